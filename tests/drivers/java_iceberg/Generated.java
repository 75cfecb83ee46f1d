import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.FileWriterFactory;
import org.apache.iceberg.io.WriteResult;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;

/** Rows made here, as many as a benchmark wants: they are too many to be sent. The first column is the key. */
final class Generated {
    /**
     * One commit of `rows` rows: with the keys 0, 1, .. in order, or of `keyspace` at random as one checkpoint of
     * upserts, every `delete_every`-th a delete. An int column is the key modulo 4, the others are random. Rows of a
     * checkpoint are made before the clock starts: the reply has the seconds of writing and of committing.
     */
    static JsonNode commit(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Schema schema = table.schema();
        Set<Integer> ids = Writes.ids(schema, request.required("keys"));
        Schema keys = TypeUtil.select(schema, ids);
        FileWriterFactory<Record> factory =
                Writes.factory(table)
                        .equalityFieldIds(ids.stream().mapToInt(Integer::intValue).toArray())
                        .equalityDeleteRowSchema(keys)
                        .build();
        Random random = new Random(request.path("seed").asLong());
        int rows = request.required("rows").asInt();
        int deleteEvery = request.path("delete_every").asInt();
        boolean changes = request.hasNonNull("keyspace");
        List<Record> made = new ArrayList<>();
        for (int at = 0; changes && at < rows; at++) {
            made.add(row(schema, (long) (random.nextDouble() * request.get("keyspace").asLong()), random));
        }
        DeltaWriter writer = new DeltaWriter(table, keys, factory, changes, 512L << 20);
        long started = System.nanoTime();
        for (int at = 0; at < rows; at++) {
            if (!changes) {
                writer.write(row(schema, at, random));
            } else {
                writer.change(deleteEvery > 0 && at % deleteEvery == 0 ? "-D" : "+I", made.get(at));
            }
        }
        WriteResult result = writer.complete();
        long written = System.nanoTime();
        RowDelta delta = table.newRowDelta();
        for (DataFile file : result.dataFiles()) {
            delta.addRows(file);
        }
        for (DeleteFile file : result.deleteFiles()) {
            delta.addDeletes(file);
        }
        delta.commit();
        table.refresh();
        return IcebergDriver.JSON
                .createObjectNode()
                .put("snapshot", table.currentSnapshot().snapshotId())
                .put("write_seconds", (written - started) / 1e9)
                .put("commit_seconds", (System.nanoTime() - written) / 1e9);
    }

    private static Record row(Schema schema, long key, Random random) {
        GenericRecord row = GenericRecord.create(schema);
        List<Types.NestedField> columns = schema.columns();
        row.set(0, key);
        for (int at = 1; at < columns.size(); at++) {
            row.set(at, value(columns.get(at), key, random));
        }
        return row;
    }

    private static Object value(Types.NestedField column, long key, Random random) {
        return switch (column.type().typeId()) {
            case INTEGER -> (int) (key % 4);
            case LONG -> (long) random.nextInt(1_000_000);
            case DOUBLE -> random.nextGaussian();
            case DECIMAL -> new BigDecimal(BigInteger.valueOf(random.nextInt(1_000_000)), 2);
            case STRING -> column.name() + " " + key + " " + Long.toHexString(random.nextLong())
                    + Long.toHexString(random.nextLong());
            default -> throw new IllegalArgumentException("column: found " + column);
        };
    }

    private Generated() {}
}
