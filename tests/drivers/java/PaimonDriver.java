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
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/** One JSON request per line in, one JSON reply per line out; every verb runs Paimon's own code. */
public final class PaimonDriver {
    static final ObjectMapper JSON = new ObjectMapper();

    interface Verb {
        JsonNode apply(JsonNode request) throws Exception;
    }

    private static final Map<String, Verb> VERBS = verbs();

    public static void main(String[] args) throws Exception {
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        // Paimon and Hadoop may print; the reply stream must carry replies only.
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
        verbs.put("alter", Tables::alter);
        verbs.put("schema", Tables::schema);
        verbs.put("create_in_hive", HiveTables::create);
        verbs.put("alter_in_hive", HiveTables::alter);
        verbs.put("write", Writes::write);
        verbs.put("write_random", RandomWrites::write);
        verbs.put("truncate", Writes::truncate);
        verbs.put("delete_positions", Appends::delete);
        verbs.put("prepare_delete", Appends::prepareDelete);
        verbs.put("compact", Compactions::compact);
        verbs.put("prepare_compact", Compactions::prepare);
        verbs.put("commit_prepared", Compactions::commitPrepared);
        verbs.put("abort_prepared", Compactions::abortPrepared);
        verbs.put("pick", Picks::pick);
        verbs.put("compact_manifests", Compactions::compactManifests);
        verbs.put("read", Reads::read);
        verbs.put("read_digest", Reads::digest);
        verbs.put("open_stream", Streams::open);
        verbs.put("follow_stream", Streams::follow);
        verbs.put("close_stream", Streams::close);
        verbs.put("changelog", Streams::changelog);
        verbs.put("files", Metadata::files);
        verbs.put("options", Metadata::options);
        verbs.put("vectors", Metadata::vectors);
        verbs.put("snapshot", Metadata::snapshot);
        verbs.put("snapshots", Metadata::snapshots);
        verbs.put("expire", Upkeep::expire);
        verbs.put("expire_as_configured", Upkeep::expireAsConfigured);
        verbs.put("create_branch", Upkeep::createBranch);
        verbs.put("drop_branch", Upkeep::dropBranch);
        verbs.put("rollback", Upkeep::rollback);
        verbs.put("set_consumer", Upkeep::setConsumer);
        verbs.put("create_tag", Upkeep::createTag);
        verbs.put("delete_tag", Upkeep::deleteTag);
        verbs.put("delete_orphans", Upkeep::deleteOrphans);
        return verbs;
    }

    private PaimonDriver() {}
}
