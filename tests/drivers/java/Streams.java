import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.paimon.Snapshot;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.manifest.ManifestFileMeta;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.types.RowType;

/** Streaming readers: each follows a table from plan to plan, and can be stopped and resumed at its checkpoint. */
final class Streams {
    private static final Map<String, Streams> OPEN = new HashMap<>();

    private final ReadBuilder builder;
    private final StreamTableScan scan;

    private Streams(FileStoreTable table, JsonNode request) {
        builder = table.newReadBuilder();
        scan = builder.newStreamScan();
        if (request.hasNonNull("next")) {
            scan.restore(request.get("next").asLong());
        }
    }

    /** A reader that begins with the table's rows or, with "next", goes on with the changes of that snapshot. */
    static JsonNode open(JsonNode request) {
        String handle = UUID.randomUUID().toString();
        OPEN.put(handle, new Streams(Tables.openWithOptions(request), request));
        return PaimonDriver.JSON.createObjectNode().put("handle", handle);
    }

    /** The rows of every plan up to now, each with its kind, and the snapshot to go on with. */
    static JsonNode follow(JsonNode request) throws Exception {
        Streams stream = OPEN.get(request.required("handle").asText());
        ObjectNode result = PaimonDriver.JSON.createObjectNode();
        ArrayNode rows = result.putArray("rows");
        for (List<Split> splits = stream.plan(); !splits.isEmpty(); splits = stream.plan()) {
            for (Split split : splits) {
                stream.read(split, rows);
            }
        }
        return result.put("next", stream.scan.checkpoint());
    }

    static JsonNode close(JsonNode request) {
        OPEN.remove(request.required("handle").asText());
        return PaimonDriver.JSON.createObjectNode();
    }

    private List<Split> plan() {
        return new ArrayList<>(scan.plan().splits());
    }

    private void read(Split split, ArrayNode rows) throws Exception {
        RowType type = builder.readType();
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(split)) {
            reader.forEachRemaining(
                    row -> rows.add(Values.toJson(row, type).insert(0, row.getRowKind().shortString())));
        }
    }

    /** Changelog files of one snapshot's commit, in the order of their entries. */
    static JsonNode changelog(JsonNode request) {
        FileStoreTable table = Tables.open(request);
        Snapshot snapshot = Metadata.at(table, request);
        ArrayNode result = PaimonDriver.JSON.createArrayNode();
        if (snapshot == null || snapshot.changelogManifestList() == null) {
            return result;
        }
        for (ManifestFileMeta meta : table.store().manifestListFactory().create().readChangelogManifests(snapshot)) {
            for (ManifestEntry entry :
                    table.store().manifestFileFactory().create().read(meta.fileName(), meta.fileSize())) {
                result.add(Metadata.file(table, entry));
            }
        }
        return result;
    }
}
