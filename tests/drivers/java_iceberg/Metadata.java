import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.EntryReads;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;

/** Manifest lists, manifests and table metadata as Iceberg reads them, under the names of the specification. */
final class Metadata {
    record Entry(EntryReads.Entry of) {
        ContentFile<?> file() {
            return of.file();
        }
    }

    /** The snapshot of the request, by id, by branch or tag, or the current one; null of a table without any. */
    static Snapshot snapshot(Table table, JsonNode request) {
        if (request.hasNonNull("snapshot")) {
            Snapshot found = table.snapshot(request.get("snapshot").asLong());
            if (found == null) {
                throw new IllegalArgumentException("snapshot: none with the id " + request.get("snapshot"));
            }
            return found;
        }
        return request.hasNonNull("ref") ? table.snapshot(request.get("ref").asText()) : table.currentSnapshot();
    }

    static List<Entry> live(Table table, Snapshot snapshot) throws Exception {
        List<Entry> found = new ArrayList<>();
        for (ManifestFile manifest : snapshot.allManifests(table.io())) {
            for (EntryReads.Entry entry : EntryReads.read(manifest, table.io(), table.specs())) {
                if (entry.status() != 2) {
                    found.add(new Entry(entry));
                }
            }
        }
        return found;
    }

    static JsonNode metadata(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        return IcebergDriver.JSON.readTree(TableMetadataParser.toJson(Tables.operations(table).current()));
    }

    static JsonNode manifests(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        ArrayNode found = IcebergDriver.JSON.createArrayNode();
        Snapshot snapshot = snapshot(table, request);
        if (snapshot != null) {
            for (ManifestFile manifest : snapshot.allManifests(table.io())) {
                found.add(manifest(manifest));
            }
        }
        return found;
    }

    private static ObjectNode manifest(ManifestFile manifest) {
        ObjectNode found =
                IcebergDriver.JSON
                        .createObjectNode()
                        .put("manifest_path", manifest.path())
                        .put("manifest_length", manifest.length())
                        .put("partition_spec_id", manifest.partitionSpecId())
                        .put("content", manifest.content().id())
                        .put("sequence_number", manifest.sequenceNumber())
                        .put("min_sequence_number", manifest.minSequenceNumber())
                        .put("added_snapshot_id", manifest.snapshotId())
                        .put("added_files_count", manifest.addedFilesCount())
                        .put("existing_files_count", manifest.existingFilesCount())
                        .put("deleted_files_count", manifest.deletedFilesCount())
                        .put("added_rows_count", manifest.addedRowsCount())
                        .put("existing_rows_count", manifest.existingRowsCount())
                        .put("deleted_rows_count", manifest.deletedRowsCount())
                        .put("first_row_id", manifest.firstRowId());
        ArrayNode partitions = found.putArray("partitions");
        for (ManifestFile.PartitionFieldSummary summary : manifest.partitions()) {
            partitions
                    .addObject()
                    .put("contains_null", summary.containsNull())
                    .put("contains_nan", summary.containsNaN())
                    .put("lower_bound", hex(summary.lowerBound()))
                    .put("upper_bound", hex(summary.upperBound()));
        }
        return found;
    }

    /** Entries of a snapshot's manifests, or of the manifest of a path, deleted ones too. */
    static JsonNode entries(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        ArrayNode found = IcebergDriver.JSON.createArrayNode();
        Snapshot snapshot = snapshot(table, request);
        if (snapshot == null) {
            return found;
        }
        for (ManifestFile manifest : snapshot.allManifests(table.io())) {
            for (EntryReads.Entry entry : EntryReads.read(manifest, table.io(), table.specs())) {
                ObjectNode one = found.addObject();
                one.put("manifest_path", entry.manifest());
                one.put("status", entry.status());
                one.put("snapshot_id", entry.snapshot());
                one.put("sequence_number", entry.sequence());
                one.put("file_sequence_number", entry.fileSequence());
                one.setAll(file(entry.file(), table));
            }
        }
        return found;
    }

    static ObjectNode file(ContentFile<?> file, Table table) throws Exception {
        ObjectNode found =
                IcebergDriver.JSON
                        .createObjectNode()
                        .put("content", file.content().id())
                        .put("file_path", file.location())
                        .put("file_format", file.format().toString())
                        .put("spec_id", file.specId())
                        .put("record_count", file.recordCount())
                        .put("file_size_in_bytes", file.fileSizeInBytes())
                        .put("sort_order_id", file.sortOrderId());
        found.set("partition", Values.partition(file.partition(), table.specs().get(file.specId())));
        found.set("column_sizes", counts(file.columnSizes()));
        found.set("value_counts", counts(file.valueCounts()));
        found.set("null_value_counts", counts(file.nullValueCounts()));
        found.set("nan_value_counts", counts(file.nanValueCounts()));
        found.set("lower_bounds", bounds(file.lowerBounds()));
        found.set("upper_bounds", bounds(file.upperBounds()));
        found.put("key_metadata", hex(file.keyMetadata()));
        found.set("split_offsets", IcebergDriver.JSON.valueToTree(file.splitOffsets()));
        found.set("equality_ids", IcebergDriver.JSON.valueToTree(file.equalityFieldIds()));
        found.put("first_row_id", file.firstRowId());
        DeleteFile delete = file.content() == FileContent.DATA ? null : (DeleteFile) file;
        found.put("referenced_data_file", delete == null ? null : delete.referencedDataFile());
        found.put("content_offset", delete == null ? null : delete.contentOffset());
        found.put("content_size_in_bytes", delete == null ? null : delete.contentSizeInBytes());
        return found;
    }

    private static JsonNode counts(Map<Integer, Long> counts) {
        return IcebergDriver.JSON.valueToTree(counts == null ? null : new TreeMap<>(counts));
    }

    private static JsonNode bounds(Map<Integer, ByteBuffer> bounds) {
        if (bounds == null) {
            return IcebergDriver.JSON.nullNode();
        }
        ObjectNode found = IcebergDriver.JSON.createObjectNode();
        new TreeMap<>(bounds).forEach((id, bound) -> found.put(id.toString(), hex(bound)));
        return found;
    }

    private static String hex(ByteBuffer buffer) {
        return buffer == null ? null : HexFormat.of().formatHex(Values.bytes(buffer));
    }

    private Metadata() {}
}
