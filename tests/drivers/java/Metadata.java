import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.Snapshot;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.index.DeletionVectorMeta;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.options.ConfigOption;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.RowType;

/** A snapshot's files, vectors and JSON as Paimon's own readers decode them. */
final class Metadata {
    static JsonNode files(JsonNode request) {
        FileStoreTable table = Tables.open(request);
        ArrayNode result = PaimonDriver.JSON.createArrayNode();
        Snapshot snapshot = at(table, request);
        if (snapshot == null) {
            return result;
        }
        List<ManifestEntry> entries = new ArrayList<>(table.store().newScan().withSnapshot(snapshot).plan().files());
        entries.sort(
                Comparator.comparing((ManifestEntry e) -> Compactions.partition(table, e.partition()).toString())
                        .thenComparing(ManifestEntry::bucket)
                        .thenComparing(ManifestEntry::level)
                        .thenComparing(e -> e.file().minSequenceNumber())
                        .thenComparing(ManifestEntry::fileName));
        entries.forEach(entry -> result.add(file(table, entry)));
        return result;
    }

    static ObjectNode file(FileStoreTable table, ManifestEntry entry) {
        DataFileMeta file = entry.file();
        RowType key = table.schema().logicalTrimmedPrimaryKeysType();
        ObjectNode result = PaimonDriver.JSON.createObjectNode();
        result.set("partition", Compactions.partition(table, entry.partition()));
        result.put("bucket", entry.bucket()).put("total_buckets", entry.totalBuckets());
        result.put("name", file.fileName()).put("size", file.fileSize());
        result.put("level", file.level()).put("rows", file.rowCount());
        result.put("delete_rows", file.deleteRowCount().orElse(null));
        result.put("min_sequence", file.minSequenceNumber()).put("max_sequence", file.maxSequenceNumber());
        result.put("source", file.fileSource().map(Enum::name).orElse(null));
        result.put("schema_id", file.schemaId()).put("creation_millis", file.creationTime().getMillisecond());
        result.set("extra_files", PaimonDriver.JSON.valueToTree(file.extraFiles()));
        result.put("external_path", file.externalPath().orElse(null)).put("first_row_id", file.firstRowId());
        if (key.getFieldCount() > 0) {
            result.set("min_key", Values.toJson(file.minKey(), key));
            result.set("max_key", Values.toJson(file.maxKey(), key));
            result.set("key_stats", stats(file.keyStats(), key));
        }
        RowType written = table.schemaManager().schema(file.schemaId()).logicalRowType();
        List<String> columns = file.valueStatsCols();
        result.set("value_stats", stats(file.valueStats(), columns == null ? written : written.project(columns)));
        return result;
    }

    /** Per column [min, max, null count]; min and max are null for a column without values or statistics. */
    private static ObjectNode stats(SimpleStats stats, RowType type) {
        ObjectNode result = PaimonDriver.JSON.createObjectNode();
        for (int i = 0; i < type.getFieldCount(); i++) {
            ArrayNode column = result.putArray(type.getFieldNames().get(i));
            column.add(Values.toJson(stats.minValues(), i, type.getTypeAt(i)));
            column.add(Values.toJson(stats.maxValues(), i, type.getTypeAt(i)));
            column.add(stats.nullCounts().isNullAt(i) ? null : stats.nullCounts().getLong(i));
        }
        return result;
    }

    static JsonNode vectors(JsonNode request) {
        FileStoreTable table = Tables.open(request);
        boolean positions = request.path("positions").asBoolean(true);
        IndexFileHandler handler = table.store().newIndexFileHandler();
        ArrayNode result = PaimonDriver.JSON.createArrayNode();
        List<IndexManifestEntry> entries = new ArrayList<>(handler.scan(at(table, request), "DELETION_VECTORS"));
        entries.sort(
                Comparator.comparing((IndexManifestEntry e) -> Compactions.partition(table, e.partition()).toString())
                        .thenComparing(IndexManifestEntry::bucket));
        for (IndexManifestEntry entry : entries) {
            result.add(indexFile(table, entry, positions ? handler.readAllDeletionVectors(entry) : Map.of()));
        }
        return result;
    }

    private static ObjectNode indexFile(
            FileStoreTable table, IndexManifestEntry entry, Map<String, DeletionVector> vectors) {
        ObjectNode result = PaimonDriver.JSON.createObjectNode();
        result.set("partition", Compactions.partition(table, entry.partition()));
        result.put("bucket", entry.bucket()).put("index_file", entry.indexFile().fileName());
        result.put("size", entry.indexFile().fileSize()).put("vectors", entry.indexFile().rowCount());
        ObjectNode files = result.putObject("files");
        for (DeletionVectorMeta meta : new TreeMap<>(entry.indexFile().dvRanges()).values()) {
            ObjectNode file = files.putObject(meta.dataFileName());
            file.put("offset", meta.offset()).put("length", meta.length()).put("cardinality", meta.cardinality());
            DeletionVector vector = vectors.get(meta.dataFileName());
            if (vector != null) {
                file.put("kind", vector.getClass().getSimpleName());
                ArrayNode deleted = file.putArray("positions");
                vector.forEachDeletedPosition(deleted::add);
            }
        }
        return result;
    }

    static JsonNode snapshot(JsonNode request) throws Exception {
        Snapshot snapshot = at(Tables.open(request), request);
        return snapshot == null ? null : PaimonDriver.JSON.readTree(snapshot.toJson());
    }

    static JsonNode snapshots(JsonNode request) throws Exception {
        ArrayNode result = PaimonDriver.JSON.createArrayNode();
        List<Snapshot> all = new ArrayList<>();
        for (Iterator<Snapshot> it = Tables.open(request).snapshotManager().snapshots(); it.hasNext(); ) {
            all.add(it.next());
        }
        all.sort(Comparator.comparingLong(Snapshot::id));
        for (Snapshot snapshot : all) {
            result.add(PaimonDriver.JSON.readTree(snapshot.toJson()));
        }
        return result;
    }

    static Snapshot at(FileStoreTable table, JsonNode request) {
        return request.has("snapshot")
                ? table.snapshotManager().snapshot(request.get("snapshot").asLong())
                : table.snapshotManager().latestSnapshotFromFileSystem();
    }

    /** {key, older: its older names, default, values: those of an enumeration or a flag} of every option of a table. */
    static JsonNode options(JsonNode request) throws Exception {
        Map<String, ConfigOption<?>> options = new TreeMap<>();
        for (Field field : CoreOptions.class.getFields()) {
            if (ConfigOption.class.isAssignableFrom(field.getType())) {
                ConfigOption<?> option = (ConfigOption<?>) field.get(null);
                options.put(option.key(), option);
            }
        }
        ArrayNode result = PaimonDriver.JSON.createArrayNode();
        for (ConfigOption<?> option : options.values()) {
            ObjectNode described = result.addObject().put("key", option.key());
            ArrayNode older = described.putArray("older");
            option.fallbackKeys().forEach(key -> older.add(key.getKey()));
            ArrayNode values = described.putArray("values");
            Object usual = option.defaultValue();
            described.put("default", usual == null ? null : usual.toString());
            if (usual instanceof Boolean) {
                values.add("true").add("false");
            } else if (usual instanceof Enum) {
                for (Object value : ((Enum<?>) usual).getDeclaringClass().getEnumConstants()) {
                    values.add(value.toString());
                }
            }
        }
        return result;
    }

    private Metadata() {}
}
