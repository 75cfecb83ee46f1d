import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.consumer.ConsumerManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.operation.CleanOrphanFilesResult;
import org.apache.paimon.operation.LocalOrphanFilesClean;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;

/** Expiry, tags and orphan cleaning: what Paimon does to files that our commits must leave readable. */
final class Upkeep {
    static JsonNode expire(JsonNode request) {
        FileStoreTable table = Tables.open(request);
        ExpireConfig.Builder config =
                ExpireConfig.builder()
                        .snapshotRetainMax(request.path("retain_max").asInt(1))
                        .snapshotRetainMin(request.path("retain_min").asInt(1))
                        .snapshotTimeRetain(Duration.ofMillis(request.path("retain_millis").asLong(0)));
        if (request.has("changelog_retain_max")) {
            config.changelogRetainMax(request.get("changelog_retain_max").asInt());
        }
        return expired(table.newExpireSnapshots().config(config.build()).expire());
    }

    /** With the options of the table, as its own writers do. */
    static JsonNode expireAsConfigured(JsonNode request) {
        FileStoreTable table = Tables.open(request);
        return expired(table.newExpireSnapshots().config(table.coreOptions().expireConfig()).expire());
    }

    private static JsonNode expired(int snapshots) {
        return PaimonDriver.JSON.createObjectNode().put("expired", snapshots);
    }

    static JsonNode createBranch(JsonNode request) {
        FileStoreTable table = Tables.open(request);
        if (request.has("tag")) {
            table.createBranch(request.required("name").asText(), request.get("tag").asText());
        } else {
            table.createBranch(request.required("name").asText());
        }
        return PaimonDriver.JSON.createObjectNode();
    }

    static JsonNode dropBranch(JsonNode request) {
        Tables.open(request).deleteBranch(request.required("name").asText());
        return PaimonDriver.JSON.createObjectNode();
    }

    static JsonNode rollback(JsonNode request) {
        Tables.open(request).rollbackTo(request.required("snapshot").asLong());
        return PaimonDriver.JSON.createObjectNode();
    }

    static JsonNode setConsumer(JsonNode request) {
        FileStoreTable table = Tables.open(request);
        new ConsumerManager(table.fileIO(), table.location())
                .resetConsumer(
                        request.required("name").asText(), new Consumer(request.required("snapshot").asLong()));
        return PaimonDriver.JSON.createObjectNode();
    }

    static JsonNode createTag(JsonNode request) {
        Tables.open(request).createTag(request.required("name").asText(), request.required("snapshot").asLong());
        return PaimonDriver.JSON.createObjectNode();
    }

    static JsonNode deleteTag(JsonNode request) {
        Tables.open(request).deleteTag(request.required("name").asText());
        return PaimonDriver.JSON.createObjectNode();
    }

    static JsonNode deleteOrphans(JsonNode request) throws Exception {
        FileStoreTable table = Tables.open(request);
        boolean dryRun = request.path("dry_run").asBoolean(true);
        long olderThan = request.path("older_than_millis").asLong(System.currentTimeMillis());
        CleanOrphanFilesResult result = new LocalOrphanFilesClean(table, olderThan, dryRun).clean();
        List<Path> paths = result.getDeletedFilesPath();
        List<String> found =
                paths == null
                        ? List.of()
                        : paths.stream().map(path -> path.toUri().getPath()).sorted().collect(Collectors.toList());
        return PaimonDriver.JSON
                .createObjectNode()
                .put("count", result.getDeletedFileCount())
                .put("bytes", result.getDeletedFileTotalLenInBytes())
                .set("files", PaimonDriver.JSON.valueToTree(found));
    }

    private Upkeep() {}
}
