package nightkeep;

import java.math.BigDecimal;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;

/**
 * (label, path) of an ORC file -> its rows as Spark has them: label, ordinal in the file, wanted columns.
 *
 * Decoded by ORC's Java reader. Numbers of days and times are as the reader returns them, of whatever calendar a file
 * states; a time without a zone is the wall time of its writer. Janino compiles this class: it knows no lambdas, and
 * takes generic types for raw ones.
 */
public final class OrcFileRows implements FlatMapFunction {
    private static final long serialVersionUID = 1L;
    private static final String ID = "iceberg.id";

    private final SerializableConfiguration settings;
    private final StructType wanted;
    private final HashMap names;
    private final HashSet required;
    private final boolean byId;

    /**
     * `wanted`: the columns. A field is that of the file whose attribute iceberg.id is the number after the field's
     * first letter; without `byId`, the one with the name that `names` has for the field, or, if `names` is null, with
     * the field's own. A file that lacks a `required` column is refused, another column is null.
     */
    public OrcFileRows(
            SerializableConfiguration settings, StructType wanted, boolean byId, HashMap names, HashSet required) {
        this.settings = settings;
        this.wanted = wanted;
        this.byId = byId;
        this.names = names;
        this.required = required;
    }

    public Iterator call(Object file) throws Exception {
        List pair = (List) file;
        return new Rows(this, (String) pair.get(0), (String) pair.get(1));
    }

    int place(TypeDescription struct, String field) {
        List children = struct.getChildren();
        List held = struct.getFieldNames();
        Object name = names == null ? field : names.get(field);
        for (int i = 0; i < children.size(); i++) {
            String id = ((TypeDescription) children.get(i)).getAttributeValue(ID);
            if (byId ? field.substring(1).equals(id) : held.get(i).equals(name)) {
                return i;
            }
        }
        return -1;
    }

    /** A column of a file, or a value within one. `parts` are those of fields, elements, or keys and values. */
    static final class Part {
        final TypeDescription held;
        final DataType shown;
        final String kind;
        Part[] parts = new Part[0];
        int[] places = new int[0];

        /** `name`: the path of the value in the file, empty for the row. */
        Part(OrcFileRows reading, String name, TypeDescription held, DataType shown) {
            this.held = held;
            this.shown = shown;
            kind = shown.typeName().startsWith("decimal") ? "decimal" : shown.typeName();
            if (!fits(held.getCategory().getName())) {
                throw new IllegalArgumentException("column " + name + ": a " + shown.sql() + ", found " + held);
            }
            if (shown instanceof StructType) {
                StructField[] fields = ((StructType) shown).fields();
                parts = new Part[fields.length];
                places = new int[fields.length];
                for (int i = 0; i < fields.length; i++) {
                    places[i] = reading.place(held, fields[i].name());
                    if (places[i] >= 0) {
                        TypeDescription inner = (TypeDescription) held.getChildren().get(places[i]);
                        String path = name + (name.isEmpty() ? "" : ".") + held.getFieldNames().get(places[i]);
                        parts[i] = new Part(reading, path, inner, fields[i].dataType());
                    }
                }
            } else if (shown instanceof ArrayType) {
                DataType element = ((ArrayType) shown).elementType();
                parts = new Part[] {part(reading, name + ".element", 0, element)};
            } else if (shown instanceof MapType) {
                MapType map = (MapType) shown;
                parts = new Part[] {
                    part(reading, name + ".key", 0, map.keyType()), part(reading, name + ".value", 1, map.valueType())
                };
            }
        }

        private Part part(OrcFileRows reading, String name, int place, DataType kind) {
            return new Part(reading, name, (TypeDescription) held.getChildren().get(place), kind);
        }

        private boolean fits(String category) {
            boolean isWhole = Arrays.asList(new String[] {"tinyint", "smallint", "int", "bigint"}).contains(category);
            boolean isTime = category.startsWith("timestamp");
            if (kind.equals("boolean") || kind.equals("binary") || kind.equals("date") || kind.equals("struct")
                    || kind.equals("map") || kind.equals("array") || kind.equals("decimal")) {
                return category.equals(kind);
            }
            if (kind.equals("string")) {
                return category.equals("string") || category.equals("char") || category.equals("varchar");
            }
            if (kind.equals("float")) {
                return category.equals("float");
            }
            if (kind.equals("double")) {
                return category.equals("float") || category.equals("double");
            }
            if (kind.startsWith("timestamp")) {
                return isTime;
            }
            return isWhole || (kind.equals("long") && isTime);
        }

        Object value(ColumnVector vector, int at) {
            int row = vector.isRepeating ? 0 : at;
            if (!vector.noNulls && vector.isNull[row]) {
                return null;
            }
            if (vector instanceof LongColumnVector) {
                return whole(((LongColumnVector) vector).vector[row]);
            }
            if (vector instanceof DoubleColumnVector) {
                double value = ((DoubleColumnVector) vector).vector[row];
                return kind.equals("float") ? (Object) Float.valueOf((float) value) : (Object) Double.valueOf(value);
            }
            if (vector instanceof BytesColumnVector) {
                BytesColumnVector bytes = (BytesColumnVector) vector;
                int start = bytes.start[row];
                byte[] copy = Arrays.copyOfRange(bytes.vector[row], start, start + bytes.length[row]);
                return kind.equals("string") ? (Object) UTF8String.fromBytes(copy) : (Object) copy;
            }
            if (vector instanceof TimestampColumnVector) {
                TimestampColumnVector times = (TimestampColumnVector) vector;
                long second = Math.floorDiv(times.time[row], 1000L);
                long nanos = times.nanos[row];
                return Long.valueOf(
                    kind.equals("long")
                        ? Math.addExact(Math.multiplyExact(second, 1000000000L), nanos)
                        : Math.addExact(Math.multiplyExact(second, 1000000L), nanos / 1000L));
            }
            if (vector instanceof DecimalColumnVector) {
                BigDecimal number = ((DecimalColumnVector) vector).vector[row].getHiveDecimal().bigDecimalValue();
                DecimalType type = (DecimalType) shown;
                scala.math.BigDecimal scaled = new scala.math.BigDecimal(number.setScale(type.scale()));
                return Decimal.apply(scaled, type.precision(), type.scale());
            }
            return nested(vector, row);
        }

        private Object whole(long value) {
            if (kind.equals("boolean")) {
                return Boolean.valueOf(value != 0);
            }
            if (kind.equals("long")) {
                return Long.valueOf(value);
            }
            if (kind.equals("integer") || kind.equals("date")) {
                return Integer.valueOf(Math.toIntExact(value));
            }
            if (kind.equals("short") ? value != (short) value : value != (byte) value) {
                throw new ArithmeticException(value + " as " + shown.sql());
            }
            return kind.equals("short") ? (Object) Short.valueOf((short) value) : (Object) Byte.valueOf((byte) value);
        }

        private Object nested(ColumnVector vector, int row) {
            if (vector instanceof StructColumnVector) {
                ColumnVector[] fields = ((StructColumnVector) vector).fields;
                Object[] values = new Object[parts.length];
                for (int i = 0; i < parts.length; i++) {
                    values[i] = parts[i] == null ? null : parts[i].value(fields[places[i]], row);
                }
                return new GenericInternalRow(values);
            }
            if (vector instanceof ListColumnVector) {
                ListColumnVector list = (ListColumnVector) vector;
                return values(parts[0], list.child, list.offsets[row], list.lengths[row]);
            }
            MapColumnVector map = (MapColumnVector) vector;
            long start = map.offsets[row];
            long count = map.lengths[row];
            GenericArrayData keys = values(parts[0], map.keys, start, count);
            return new ArrayBasedMapData(keys, values(parts[1], map.values, start, count));
        }

        private static GenericArrayData values(Part part, ColumnVector vector, long start, long count) {
            Object[] values = new Object[(int) count];
            for (int i = 0; i < values.length; i++) {
                values[i] = part.value(vector, (int) start + i);
            }
            return new GenericArrayData(values);
        }
    }

    /** The rows of one file. */
    static final class Rows implements Iterator, TaskCompletionListener {
        private final UTF8String label;
        private final String path;
        private final Part row;
        private final Reader file;
        private final RecordReader reader;
        private final VectorizedRowBatch batch;
        private long before = 0;
        private int at = 0;
        private boolean ended = false;

        Rows(OrcFileRows reading, String label, String path) throws Exception {
            this.label = UTF8String.fromString(label);
            this.path = path;
            try {
                // Values of the calendar that the file states are those stored.
                Reader opened = opened(reading, false);
                if (opened.writerUsedProlepticGregorian()) {
                    opened.close();
                    opened = opened(reading, true);
                }
                file = opened;
                TypeDescription held = opened.getSchema();
                Iterator names = reading.required.iterator();
                while (names.hasNext()) {
                    Object wanted = names.next();
                    if (!held.getFieldNames().contains(wanted)) {
                        throw new IllegalArgumentException("column " + wanted + ", found " + held.getFieldNames());
                    }
                }
                row = new Part(reading, "", held, reading.wanted);
                boolean[] included = new boolean[held.getMaximumId() + 1];
                included[0] = true;
                for (int i = 0; i < row.parts.length; i++) {
                    if (row.parts[i] != null) {
                        TypeDescription column = row.parts[i].held;
                        Arrays.fill(included, column.getId(), column.getMaximumId() + 1, true);
                    }
                }
                reader = opened.rows(opened.options().include(included).skipCorruptRecords(false));
                batch = held.createRowBatch();
                batch.size = 0;
            } catch (Exception failure) {
                throw named(failure);
            }
            TaskContext task = TaskContext.get();
            if (task != null) {
                task.addTaskCompletionListener(this);
            }
        }

        private RuntimeException named(Exception failure) {
            return new RuntimeException(path + ": " + failure.getMessage(), failure);
        }

        private Reader opened(OrcFileRows reading, boolean proleptic) throws Exception {
            Configuration conf = reading.settings.value();
            OrcFile.ReaderOptions options = OrcFile.readerOptions(conf).useUTCTimestamp(true);
            return OrcFile.createReader(new Path(path), options.convertToProlepticGregorian(proleptic));
        }

        public boolean hasNext() {
            try {
                while (at >= batch.size && !ended) {
                    before += batch.size;
                    at = 0;
                    ended = !reader.nextBatch(batch);
                    if (ended) {
                        batch.size = 0;
                        end();
                    }
                }
                return at < batch.size;
            } catch (Exception failure) {
                throw named(failure);
            }
        }

        private void end() throws Exception {
            close();
            if (before != file.getNumberOfRows()) {
                throw new IllegalStateException(file.getNumberOfRows() + " rows in the footer, " + before + " stored");
            }
        }

        public Object next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            Object[] values = new Object[row.parts.length + 2];
            values[0] = label;
            values[1] = Long.valueOf(before + at);
            for (int i = 0; i < row.parts.length; i++) {
                try {
                    values[i + 2] = row.parts[i] == null ? null : row.parts[i].value(batch.cols[row.places[i]], at);
                } catch (RuntimeException failure) {
                    Object name = row.held.getFieldNames().get(row.places[i]);
                    throw new RuntimeException(path + " column " + name + ": " + failure.getMessage(), failure);
                }
            }
            at++;
            return new GenericInternalRow(values);
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }

        private void close() throws Exception {
            reader.close();
            file.close();
        }

        public void onTaskCompletion(TaskContext task) {
            try {
                close();
            } catch (Exception failure) {
                throw named(failure);
            }
        }
    }
}
