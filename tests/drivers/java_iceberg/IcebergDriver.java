import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.shaded.com.fasterxml.jackson.core.json.JsonWriteFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.json.JsonMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/** One JSON request per line in, one JSON reply per line out; every verb runs Iceberg's own code. */
public final class IcebergDriver {
    static final JsonMapper JSON =
            JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

    interface Verb {
        JsonNode apply(JsonNode request) throws Exception;
    }

    private static final Map<String, Verb> VERBS = verbs();

    public static void main(String[] args) throws Exception {
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        // Iceberg and Hadoop may print; the reply stream must carry replies only.
        System.setOut(System.err);
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            replies.println(JSON.writeValueAsString(answer(line)));
            replies.flush();
        }
        System.exit(0);
    }

    private static ObjectNode answer(String line) {
        ObjectNode reply = JSON.createObjectNode();
        try {
            JsonNode request = JSON.readTree(line);
            String name = request.path("verb").asText();
            Verb verb = VERBS.get(name);
            if (verb == null) {
                throw new IllegalArgumentException(
                        "verb: expected one of " + VERBS.keySet() + ", found " + name);
            }
            reply.set("result", verb.apply(request));
        } catch (Throwable failure) {
            reply.set("error", describe(failure));
        }
        return reply;
    }

    private static ObjectNode describe(Throwable failure) {
        StringWriter trace = new StringWriter();
        failure.printStackTrace(new PrintWriter(trace));
        Throwable root = failure;
        while (root.getCause() != null && root.getCause() != root) {
            root = root.getCause();
        }
        return JSON.createObjectNode()
                .put("class", failure.getClass().getName())
                .put("message", String.valueOf(failure.getMessage()))
                .put("root_class", root.getClass().getName())
                .put("root_message", String.valueOf(root.getMessage()))
                .put("trace", trace.toString());
    }

    private static Map<String, Verb> verbs() {
        Map<String, Verb> verbs = new TreeMap<>();
        verbs.put("ping", request -> JSON.createObjectNode().put("java", System.getProperty("java.version")));
        verbs.put("create", Tables::create);
        verbs.put("register", Tables::register);
        verbs.put("drop", Tables::drop);
        verbs.put("serve", Tables::serve);
        verbs.put("describe", Tables::describe);
        verbs.put("alter", Tables::alter);
        verbs.put("refs", Tables::refs);
        verbs.put("statistics", Tables::statistics);
        verbs.put("write_rows", Writes::rows);
        verbs.put("generate", Generated::commit);
        verbs.put("write_cdc", Writes::cdc);
        verbs.put("write_equality_deletes", Deletes::equality);
        verbs.put("write_position_deletes", Deletes::positions);
        verbs.put("write_vectors", Deletes::vectors);
        verbs.put("adopt", Writes::adopt);
        verbs.put("commit", Commits::commit);
        verbs.put("begin_rewrite", Rewrites::begin);
        verbs.put("commit_rewrite", Rewrites::commit);
        verbs.put("rewrite_manifests", Rewrites::manifests);
        verbs.put("expire", Rewrites::expire);
        verbs.put("read", Reads::read);
        verbs.put("tasks", Reads::tasks);
        verbs.put("manifests", Metadata::manifests);
        verbs.put("entries", Metadata::entries);
        verbs.put("metadata", Metadata::metadata);
        return verbs;
    }

    private IcebergDriver() {}
}
