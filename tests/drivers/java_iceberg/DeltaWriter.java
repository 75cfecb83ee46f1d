import java.io.IOException;
import java.util.Map;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.DeleteGranularity;
import org.apache.iceberg.io.BaseTaskWriter;
import org.apache.iceberg.io.FileWriterFactory;
import org.apache.iceberg.util.StructLikeMap;

/** A checkpoint of one Flink subtask: a delta writer per partition, rows sent to them by their kind as Flink sends them. */
final class DeltaWriter extends BaseTaskWriter<Record> {
    private final Schema schema;
    private final Schema keys;
    private final boolean upsert;
    private final PartitionKey partition;
    private final InternalRecordWrapper wrapper;
    private final Map<StructLike, Delta> deltas;
    private Delta whole;

    DeltaWriter(Table table, Schema keys, FileWriterFactory<Record> factory, boolean upsert, long targetBytes) {
        super(
                table.spec(),
                Writes.format(table),
                factory,
                Writes.files(table, Writes.format(table)),
                table.io(),
                targetBytes,
                Tables.operations(table).current().formatVersion() > 2);
        this.schema = table.schema();
        this.keys = keys;
        this.upsert = upsert;
        this.partition = new PartitionKey(table.spec(), schema);
        this.wrapper = new InternalRecordWrapper(schema.asStruct());
        this.deltas = StructLikeMap.create(table.spec().partitionType());
    }

    final class Delta extends BaseEqualityDeltaWriter {
        private final InternalRecordWrapper row = new InternalRecordWrapper(schema.asStruct());
        private final InternalRecordWrapper key = new InternalRecordWrapper(keys.asStruct());

        Delta(StructLike of) {
            super(of, schema, keys, DeleteGranularity.FILE, dvFileWriter());
        }

        @Override
        protected StructLike asStructLike(Record data) {
            return row.copyFor(data);
        }

        @Override
        protected StructLike asStructLikeKey(Record data) {
            return key.copyFor(data);
        }
    }

    private Delta delta(Record row) {
        if (spec().isUnpartitioned()) {
            whole = whole == null ? new Delta(null) : whole;
            return whole;
        }
        partition.partition(wrapper.wrap(row));
        Delta found = deltas.get(partition);
        if (found == null) {
            PartitionKey copy = partition.copy();
            found = new Delta(copy);
            deltas.put(copy, found);
        }
        return found;
    }

    @Override
    public void write(Record row) throws IOException {
        delta(row).write(row);
    }

    /** Kinds are +I, -U, +U and -D. */
    void change(String kind, Record row) throws IOException {
        Delta delta = delta(row);
        switch (kind) {
            case "+I", "+U" -> {
                if (upsert) {
                    delta.deleteKey(key(row));
                }
                delta.write(row);
            }
            case "-U" -> {
                if (!upsert) {
                    delta.delete(row);
                }
            }
            case "-D" -> {
                if (upsert) {
                    delta.deleteKey(key(row));
                } else {
                    delta.delete(row);
                }
            }
            default -> throw new IllegalArgumentException("kind: expected +I, -U, +U or -D, found " + kind);
        }
    }

    private Record key(Record row) {
        GenericRecord key = GenericRecord.create(keys);
        keys.columns().forEach(field -> key.setField(field.name(), row.getField(field.name())));
        return key;
    }

    @Override
    public void close() throws IOException {
        if (whole != null) {
            whole.close();
        }
        for (Delta delta : deltas.values()) {
            delta.close();
        }
        deltas.clear();
        whole = null;
        super.close();
    }
}
