import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.RewriteManifests;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.actions.BinPackRewriteFilePlanner;
import org.apache.iceberg.actions.RewriteDataFilesCommitManager;
import org.apache.iceberg.actions.RewriteFileGroup;
import org.apache.iceberg.data.FileReads;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileWriterFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/** Compaction in two phases, planned and committed by Iceberg's own planner and commit manager; and other upkeep. */
final class Rewrites {
    record Running(long snapshot, Set<RewriteFileGroup> groups) {}

    private static final Map<Integer, Running> RUNNING = new HashMap<>();

    /** Writes the outputs of what the planner picks at the current snapshot; commits nothing. */
    static JsonNode begin(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        long snapshot = table.currentSnapshot().snapshotId();
        BinPackRewriteFilePlanner planner =
                new BinPackRewriteFilePlanner(table, Reads.filter(table, request), snapshot, true);
        planner.init(Tables.texts(request.path("options")));
        Set<RewriteFileGroup> groups = new LinkedHashSet<>();
        try (CloseableIterable<RewriteFileGroup> planned = planner.plan().groups()) {
            for (RewriteFileGroup group : planned) {
                group.setOutputFiles(new LinkedHashSet<>(rewritten(table, snapshot, group, request)));
                groups.add(group);
            }
        }
        RUNNING.put(RUNNING.size(), new Running(snapshot, groups));
        ObjectNode found = IcebergDriver.JSON.createObjectNode().put("handle", RUNNING.size() - 1);
        found.put("snapshot", snapshot);
        ArrayNode inputs = found.putArray("inputs");
        ArrayNode outputs = found.putArray("outputs");
        for (RewriteFileGroup group : groups) {
            group.rewrittenFiles().forEach(file -> inputs.add(file.location()));
            group.addedFiles().forEach(file -> outputs.add(file.location()));
        }
        return found;
    }

    private static List<DataFile> rewritten(Table table, long snapshot, RewriteFileGroup group, JsonNode request)
            throws Exception {
        boolean lineage = Tables.operations(table).current().formatVersion() > 2;
        Schema schema = lineage ? MetadataColumns.schemaWithRowLineage(table.schema()) : table.schema();
        TableScan scan = table.newScan().useSnapshot(snapshot).project(schema);
        List<Record> records = new ArrayList<>();
        for (FileScanTask task : group.fileScanTasks()) {
            try (CloseableIterable<Record> rows = FileReads.open(scan, task)) {
                rows.forEach(records::add);
            }
        }
        FileWriterFactory<Record> factory = Writes.factory(table).dataSchema(schema).build();
        int limit = request.path("rows_per_file").asInt(Integer.MAX_VALUE);
        return Writes.write(table, schema, table.specs().get(group.outputSpecId()), factory, records, limit);
    }

    static JsonNode commit(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Running running = RUNNING.get(request.required("handle").asInt());
        boolean starting = request.path("starting_sequence").asBoolean(true);
        new RewriteDataFilesCommitManager(table, running.snapshot(), starting).commitFileGroups(running.groups());
        table.refresh();
        return IcebergDriver.JSON.createObjectNode().put("snapshot", table.currentSnapshot().snapshotId());
    }

    /** All data manifests into one for each spec, as Iceberg does it. */
    static JsonNode manifests(JsonNode request) {
        Table table = Tables.load(request);
        RewriteManifests rewrite = table.rewriteManifests().clusterBy(file -> file.specId());
        rewrite.commit();
        table.refresh();
        return IcebergDriver.JSON.createObjectNode().put("snapshot", table.currentSnapshot().snapshotId());
    }

    /** The paths that Iceberg deletes, or with `keep_files` would. */
    static JsonNode expire(JsonNode request) {
        Table table = Tables.load(request);
        ExpireSnapshots expire = table.expireSnapshots();
        if (request.hasNonNull("older_than_millis")) {
            expire.expireOlderThan(request.get("older_than_millis").asLong());
        }
        if (request.hasNonNull("retain_last")) {
            expire.retainLast(request.get("retain_last").asInt());
        }
        request.path("snapshots").forEach(id -> expire.expireSnapshotId(id.asLong()));
        Set<String> deleted = new HashSet<>();
        boolean keep = request.path("keep_files").asBoolean();
        expire.deleteWith(
                path -> {
                    deleted.add(path);
                    if (!keep) {
                        table.io().deleteFile(path);
                    }
                });
        expire.commit();
        ArrayNode found = IcebergDriver.JSON.createArrayNode();
        deleted.stream().sorted().forEach(found::add);
        return found;
    }

    private Rewrites() {}
}
