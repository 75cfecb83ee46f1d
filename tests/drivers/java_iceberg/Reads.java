import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/** What Iceberg's generic reader reads, and what it plans to read. */
final class Reads {
    static Expression filter(Table table, JsonNode request) {
        return request.hasNonNull("where")
                ? ExpressionParser.fromJson(request.get("where").toString(), table.schema())
                : Expressions.alwaysTrue();
    }

    /** Columns by name; `_row_id`, `_file`, `_pos` and such among them. A snapshot is read by the schema of the table. */
    private static Schema projection(Table table, JsonNode columns) {
        if (columns.isMissingNode() || columns.isNull()) {
            return table.schema();
        }
        List<Types.NestedField> fields = new ArrayList<>();
        for (JsonNode column : columns) {
            String name = column.asText();
            fields.add(
                    MetadataColumns.isMetadataColumn(name)
                            ? MetadataColumns.metadataColumn(table, name)
                            : table.schema().findField(name));
        }
        return new Schema(fields);
    }

    static JsonNode read(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Schema schema = projection(table, request.path("columns"));
        ObjectNode found = IcebergDriver.JSON.createObjectNode();
        schema.columns().forEach(field -> found.withArray("/columns").add(field.name()));
        schema.columns().forEach(field -> found.withArray("/types").add(name(field.type())));
        ArrayNode rows = found.putArray("rows");
        Snapshot snapshot = Metadata.snapshot(table, request);
        if (snapshot == null) {
            return found;
        }
        IcebergGenerics.ScanBuilder scan =
                IcebergGenerics.read(table).where(filter(table, request)).project(schema);
        if (snapshot != table.currentSnapshot()) {
            scan.useSnapshot(snapshot.snapshotId());
        }
        try (CloseableIterable<Record> records = scan.build()) {
            for (Record record : records) {
                rows.add(Values.toJson(record, schema.asStruct()));
            }
        }
        return found;
    }

    /** Spark's names of types, as far as Spark has them. */
    static String name(Type type) {
        switch (type.typeId()) {
            case INTEGER:
                return "int";
            case LONG:
                return "bigint";
            case DECIMAL:
                return type.toString().replace(" ", "");
            case UUID:
                return "string";
            case FIXED:
                return "binary";
            case TIMESTAMP:
                return ((Types.TimestampType) type).shouldAdjustToUTC() ? "timestamp" : "timestamp_ntz";
            case TIMESTAMP_NANO:
                return ((Types.TimestampNanoType) type).shouldAdjustToUTC() ? "timestamp_ns" : "timestamp_ntz_ns";
            case UNKNOWN:
                return "void";
            case STRUCT:
                List<String> fields = new ArrayList<>();
                type.asStructType().fields().forEach(field -> fields.add(field.name() + ":" + name(field.type())));
                return "struct<" + String.join(",", fields) + ">";
            case LIST:
                return "array<" + name(type.asListType().elementType()) + ">";
            case MAP:
                return "map<" + name(type.asMapType().keyType()) + "," + name(type.asMapType().valueType()) + ">";
            default:
                return type.typeId().toString().toLowerCase();
        }
    }

    /** The files that a scan opens, each with the delete files it applies to them. */
    static JsonNode tasks(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        ArrayNode found = IcebergDriver.JSON.createArrayNode();
        Snapshot snapshot = Metadata.snapshot(table, request);
        if (snapshot == null) {
            return found;
        }
        TableScan scan = table.newScan().filter(filter(table, request)).useSnapshot(snapshot.snapshotId());
        try (CloseableIterable<FileScanTask> tasks = scan.includeColumnStats().planFiles()) {
            for (FileScanTask task : tasks) {
                ObjectNode one = found.addObject();
                one.setAll(Metadata.file(task.file(), table));
                one.put("sequence_number", task.file().dataSequenceNumber());
                one.put("file_sequence_number", task.file().fileSequenceNumber());
                ArrayNode deletes = one.putArray("deletes");
                for (DeleteFile delete : task.deletes()) {
                    ObjectNode file = Metadata.file(delete, table);
                    deletes.add(file.put("sequence_number", delete.dataSequenceNumber()));
                }
            }
        }
        return found;
    }

    private Reads() {}
}
