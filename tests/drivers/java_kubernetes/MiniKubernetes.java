import com.fasterxml.jackson.databind.ObjectMapper;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodStatusBuilder;
import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import io.fabric8.mockwebserver.dsl.HttpMethod;
import io.fabric8.mockwebserver.http.Buffer;
import io.fabric8.mockwebserver.http.MockResponse;
import io.fabric8.mockwebserver.http.RecordedRequest;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * The API of a cluster that has no node: it keeps objects and answers watches, and nothing runs.
 *
 * <p>Each line of the input is answered by where it listens and the changes asked of it so far. One with the verb
 * "forget" first removes all objects and these changes.
 */
public final class MiniKubernetes {
  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    ObjectMapper json = new ObjectMapper();
    MockWebServer web = new MockWebServer();
    KubernetesMockServer api =
        new KubernetesMockServer(new Context(json), web, new HashMap<>(), new Objects(), false);
    api.init(InetAddress.getByName("127.0.0.1"), 0);
    List<Map<String, String>> changes = new ArrayList<>();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      for (RecordedRequest request; (request = web.takeRequest(10, TimeUnit.MILLISECONDS)) != null; ) {
        if (!request.method().name().equals("GET")) {
          changes.add(Map.of("method", request.method().name(), "path", request.getPath()));
        }
      }
      if (json.readTree(line).get("verb").asText().equals("forget")) {
        api.reset();
        changes.clear();
      }
      Map<String, Object> found = Map.of("port", web.getPort(), "changes", changes);
      answers.println(json.writeValueAsString(Map.of("result", found)));
      answers.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  /** As a real API and not fabric8's: a new pod is pending, and an object that is applied may be a new one. */
  private static final class Objects extends KubernetesCrudDispatcher {
    @Override
    public MockResponse handleCreate(RecordedRequest request) {
      if (!request.getPath().endsWith("/pods")) {
        return super.handleCreate(request);
      }
      Pod pod = Serialization.unmarshal(request.getUtf8Body(), Pod.class);
      pod.setStatus(new PodStatusBuilder().withPhase("Pending").build());
      Buffer body = new Buffer(Serialization.asJson(pod).getBytes(StandardCharsets.UTF_8));
      return super.handleCreate(as(HttpMethod.POST, request.getPath(), request, body));
    }

    @Override
    public MockResponse handlePatch(RecordedRequest request) {
      String path = request.getPath().replaceFirst("[?].*", "");
      if (!request.getPath().contains("fieldManager=")) {
        return super.handlePatch(request);
      }
      return handleGet(path).code() == 404
          ? handleCreate(as(HttpMethod.POST, path.replaceFirst("/[^/]+$", ""), request, request.getBody()))
          : handleUpdate(as(HttpMethod.PUT, path, request, request.getBody()));
    }

    private static RecordedRequest as(HttpMethod method, String path, RecordedRequest request, Buffer body) {
      return new RecordedRequest("HTTP/1.1", method, path, request.getHeaders(), body);
    }
  }
}
