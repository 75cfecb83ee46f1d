import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
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
        ExpireConfig config =
                ExpireConfig.builder()
                        .snapshotRetainMax(request.path("retain_max").asInt(1))
                        .snapshotRetainMin(request.path("retain_min").asInt(1))
                        .snapshotTimeRetain(Duration.ofMillis(request.path("retain_millis").asLong(0)))
                        .build();
        return PaimonDriver.JSON.createObjectNode().put("expired", table.newExpireSnapshots().config(config).expire());
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
