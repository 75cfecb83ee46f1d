import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;

/** Batch reads as an engine does them: the filter is pushed down and then applied again to every row. */
final class Reads {
    interface Sink {
        void accept(InternalRow row);
    }

    private final FileStoreTable table;
    private final RowType type;
    private final List<String> output;
    private final Predicate residual;
    private final ReadBuilder builder;
    private long scanned;

    private Reads(JsonNode request) {
        table = Tables.openWithOptions(request);
        JsonNode filter = request.path("filter");
        output = request.has("projection") ? Tables.list(request.get("projection")) : table.rowType().getFieldNames();
        // TableRead.executeFilter quietly drops a condition on a column that is not projected.
        Set<String> columns = new LinkedHashSet<>(output);
        Predicates.collectFields(filter, columns);
        if (!table.rowType().getFieldNames().containsAll(columns)) {
            throw new IllegalArgumentException(
                    "columns: expected some of " + table.rowType().getFieldNames() + ", found " + columns);
        }
        type = table.rowType().project(new ArrayList<>(columns));
        residual = Predicates.parse(filter, type);
        builder = table.newReadBuilder().withReadType(type);
        if (residual != null) {
            builder.withFilter(Predicates.parse(filter, table.rowType()));
        }
    }

    static JsonNode read(JsonNode request) throws Exception {
        Reads reads = new Reads(request);
        RowType shown = reads.type.project(reads.output);
        boolean kinds = request.path("row_kinds").asBoolean(false);
        ObjectNode result = PaimonDriver.JSON.createObjectNode();
        ArrayNode rows = PaimonDriver.JSON.createArrayNode();
        List<Split> splits = reads.builder.newScan().plan().splits();
        // The output columns come first in the read type, so a prefix of the row is the projection.
        for (Split split : splits) {
            reads.scan(
                    split,
                    row -> {
                        ArrayNode values = Values.toJson(row, shown);
                        rows.add(kinds ? values.insert(0, row.getRowKind().shortString()) : values);
                    });
        }
        result.set("columns", PaimonDriver.JSON.valueToTree(reads.output));
        result.set("rows", rows);
        result.put("scanned", reads.scanned);
        return describe(result, splits);
    }

    static JsonNode digest(JsonNode request) throws Exception {
        List<Split> splits = new Reads(request).builder.newScan().plan().splits();
        int threads = Math.max(1, request.path("threads").asInt(1));
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        RowDigest total = new RowDigest();
        try {
            List<Future<RowDigest>> parts = new ArrayList<>();
            for (Split split : splits) {
                parts.add(pool.submit(() -> digest(request, split)));
            }
            for (Future<RowDigest> part : parts) {
                total.add(part.get());
            }
        } finally {
            pool.shutdownNow();
        }
        ObjectNode result = PaimonDriver.JSON.createObjectNode();
        return describe(result.put("rows", total.rows()).put("digest", total.text()), splits);
    }

    private static RowDigest digest(JsonNode request, Split split) throws Exception {
        Reads reads = new Reads(request);
        RowDigest digest = new RowDigest();
        InternalRowSerializer serializer = new InternalRowSerializer(reads.type);
        reads.scan(
                split,
                row -> {
                    // The kind is part of a BinaryRow's bytes, and differs between a raw and a merged read.
                    row.setRowKind(RowKind.INSERT);
                    digest.add(serializer.toBinaryRow(row));
                });
        return digest;
    }

    private void scan(Split split, Sink sink) throws Exception {
        IOManager spill = IOManager.create(System.getProperty("java.io.tmpdir"));
        try (RecordReader<InternalRow> reader = builder.newRead().withIOManager(spill).createReader(split)) {
            reader.forEachRemaining(
                    row -> {
                        scanned++;
                        if (residual == null || residual.test(row)) {
                            sink.accept(row);
                        }
                    });
        }
    }

    /** Splits of the difference between two snapshots are counted, and are neither raw nor of data files alone. */
    private static ObjectNode describe(ObjectNode result, List<Split> splits) {
        List<DataSplit> plain =
                splits.stream().filter(DataSplit.class::isInstance).map(DataSplit.class::cast).toList();
        long raw = plain.stream().filter(DataSplit::rawConvertible).count();
        long files = plain.stream().mapToLong(split -> split.dataFiles().size()).sum();
        return result.put("splits", splits.size()).put("raw_splits", raw).put("files", files);
    }
}
