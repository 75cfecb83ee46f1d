import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IdentityPartitionConverters;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.variants.PhysicalType;
import org.apache.iceberg.variants.Variant;
import org.apache.iceberg.variants.VariantArray;
import org.apache.iceberg.variants.VariantObject;
import org.apache.iceberg.variants.VariantValue;

/** JSON <-> Iceberg's generic values, one text per value. What has no JSON number (NaN, -0.0) travels as a string. */
final class Values {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    static ArrayNode toJson(StructLike row, Types.StructType type) throws Exception {
        ArrayNode values = NODES.arrayNode();
        for (int i = 0; i < type.fields().size(); i++) {
            values.add(toJson(row.get(i, Object.class), type.fields().get(i).type()));
        }
        return values;
    }

    static JsonNode toJson(Object value, Type type) throws Exception {
        if (value == null) {
            return NODES.nullNode();
        }
        switch (type.typeId()) {
            case BOOLEAN:
                return NODES.booleanNode((Boolean) value);
            case INTEGER:
            case LONG:
                return NODES.numberNode(((Number) value).longValue());
            case FLOAT:
            case DOUBLE:
                return floating(((Number) value).doubleValue());
            case DECIMAL:
                return NODES.textNode(((BigDecimal) value).toPlainString());
            case STRING:
            case UUID:
                return NODES.textNode(value.toString());
            case FIXED:
            case BINARY:
                return NODES.textNode(HexFormat.of().formatHex(bytes(value)));
            case DATE:
                return NODES.textNode(date((LocalDate) value));
            case TIME:
                return NODES.textNode(time((LocalTime) value, 6));
            case TIMESTAMP:
                return timestamp(value, ((Types.TimestampType) type).shouldAdjustToUTC(), 6);
            case TIMESTAMP_NANO:
                return timestamp(value, ((Types.TimestampNanoType) type).shouldAdjustToUTC(), 9);
            case STRUCT:
                return struct((StructLike) value, type.asStructType());
            case LIST:
                return list((Iterable<?>) value, type.asListType());
            case MAP:
                return map((Map<?, ?>) value, type.asMapType());
            case VARIANT:
                return variant(((Variant) value).value());
            default:
                throw new UnsupportedOperationException("type: no JSON for values of " + type);
        }
    }

    /** A scalar is [its type, its text]; a field of an object comes in the order of its name. */
    private static JsonNode variant(VariantValue value) {
        if (value.type() == PhysicalType.OBJECT) {
            TreeMap<String, JsonNode> fields = new TreeMap<>();
            VariantObject object = value.asObject();
            for (String name : object.fieldNames()) {
                fields.put(name, variant(object.get(name)));
            }
            ObjectNode found = NODES.objectNode();
            fields.forEach(found::set);
            return found;
        }
        ArrayNode found = NODES.arrayNode();
        if (value.type() == PhysicalType.ARRAY) {
            VariantArray array = value.asArray();
            for (int i = 0; i < array.numElements(); i++) {
                found.add(variant(array.get(i)));
            }
            return found;
        }
        Object held = value.asPrimitive().get();
        String text = held instanceof ByteBuffer ? HexFormat.of().formatHex(bytes(held)) : String.valueOf(held);
        return found.add(value.type().name()).add(text);
    }

    private static ObjectNode struct(StructLike value, Types.StructType type) throws Exception {
        ObjectNode found = NODES.objectNode();
        for (int i = 0; i < type.fields().size(); i++) {
            Types.NestedField field = type.fields().get(i);
            found.set(field.name(), toJson(value.get(i, Object.class), field.type()));
        }
        return found;
    }

    private static ArrayNode list(Iterable<?> value, Types.ListType type) throws Exception {
        ArrayNode found = NODES.arrayNode();
        for (Object element : value) {
            found.add(toJson(element, type.elementType()));
        }
        return found;
    }

    /** A list of [key, value] in the order of the keys' JSON. */
    private static ArrayNode map(Map<?, ?> value, Types.MapType type) throws Exception {
        TreeMap<String, ArrayNode> entries = new TreeMap<>();
        for (Map.Entry<?, ?> entry : value.entrySet()) {
            JsonNode key = toJson(entry.getKey(), type.keyType());
            ArrayNode pair = NODES.arrayNode().add(key).add(toJson(entry.getValue(), type.valueType()));
            entries.put(IcebergDriver.JSON.writeValueAsString(key), pair);
        }
        return NODES.arrayNode().addAll(entries.values());
    }

    static byte[] bytes(Object value) {
        if (value instanceof byte[]) {
            return (byte[]) value;
        }
        ByteBuffer buffer = ((ByteBuffer) value).duplicate();
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        return found;
    }

    private static JsonNode floating(double value) {
        boolean negativeZero = value == 0 && Double.doubleToRawLongBits(value) != 0;
        if (Double.isNaN(value) || Double.isInfinite(value) || negativeZero) {
            return NODES.textNode(Double.toString(value));
        }
        return NODES.numberNode(value);
    }

    private static String date(LocalDate value) {
        return String.format("%04d-%02d-%02d", value.getYear(), value.getMonthValue(), value.getDayOfMonth());
    }

    private static String time(LocalTime value, int digits) {
        String fraction = String.format("%09d", value.getNano()).substring(0, digits);
        return String.format("%02d:%02d:%02d.%s", value.getHour(), value.getMinute(), value.getSecond(), fraction);
    }

    private static JsonNode timestamp(Object value, boolean zoned, int digits) {
        LocalDateTime local =
                zoned
                        ? ((OffsetDateTime) value).withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime()
                        : (LocalDateTime) value;
        String text = date(local.toLocalDate()) + "T" + time(local.toLocalTime(), digits);
        return NODES.textNode(zoned ? text + "Z" : text);
    }

    /** A row from an array in the order of the fields, or from an object in which what is absent is null. */
    static Record toRecord(JsonNode values, Types.StructType type) {
        if (values.isArray() && values.size() != type.fields().size()) {
            throw new IllegalArgumentException("row " + values + ": expected values of " + type);
        }
        GenericRecord record = GenericRecord.create(type);
        for (int i = 0; i < type.fields().size(); i++) {
            Types.NestedField field = type.fields().get(i);
            JsonNode value = values.isArray() ? values.get(i) : values.path(field.name());
            record.set(i, toValue(value, field.type()));
        }
        return record;
    }

    static Object toValue(JsonNode json, Type type) {
        if (json == null || json.isNull() || json.isMissingNode()) {
            return null;
        }
        String text = json.asText();
        switch (type.typeId()) {
            case BOOLEAN:
                return json.booleanValue();
            case INTEGER:
                return json.intValue();
            case LONG:
                return json.longValue();
            case FLOAT:
                return json.isTextual() ? Float.parseFloat(text) : (float) json.doubleValue();
            case DOUBLE:
                return json.isTextual() ? Double.parseDouble(text) : json.doubleValue();
            case DECIMAL:
                return new BigDecimal(text).setScale(((Types.DecimalType) type).scale());
            case STRING:
                return text;
            case UUID:
                return UUID.fromString(text);
            case FIXED:
                return HexFormat.of().parseHex(text);
            case BINARY:
                return ByteBuffer.wrap(HexFormat.of().parseHex(text));
            case DATE:
                return LocalDate.parse(text);
            case TIME:
                return LocalTime.parse(text);
            case TIMESTAMP:
                return timestamp(text, ((Types.TimestampType) type).shouldAdjustToUTC());
            case TIMESTAMP_NANO:
                return timestamp(text, ((Types.TimestampNanoType) type).shouldAdjustToUTC());
            case STRUCT:
                return toRecord(json, type.asStructType());
            case LIST:
                List<Object> elements = new ArrayList<>();
                json.forEach(element -> elements.add(toValue(element, type.asListType().elementType())));
                return elements;
            case MAP:
                Map<Object, Object> entries = new LinkedHashMap<>();
                Types.MapType map = type.asMapType();
                json.forEach(e -> entries.put(toValue(e.get(0), map.keyType()), toValue(e.get(1), map.valueType())));
                return entries;
            default:
                throw new UnsupportedOperationException("type: no values of " + type + " from JSON");
        }
    }

    /** ISO text in UTC; a trailing Z is ignored. */
    private static Object timestamp(String text, boolean zoned) {
        LocalDateTime local =
                LocalDateTime.parse(text.endsWith("Z") ? text.substring(0, text.length() - 1) : text);
        return zoned ? local.atOffset(ZoneOffset.UTC) : local;
    }

    /** The values of a partition by the types of its transforms' results. */
    static ArrayNode partition(StructLike partition, PartitionSpec spec) throws Exception {
        ArrayNode found = NODES.arrayNode();
        List<Types.NestedField> fields = spec.partitionType().fields();
        for (int i = 0; i < fields.size(); i++) {
            Type type = fields.get(i).type();
            Object value = partition.get(i, Object.class);
            found.add(toJson(IdentityPartitionConverters.convertConstant(type, value), type));
        }
        return found;
    }

    /** Null for a spec without fields. */
    static PartitionData toPartition(JsonNode values, PartitionSpec spec) {
        if (spec.isUnpartitioned()) {
            return null;
        }
        Types.StructType type = spec.partitionType();
        StructLike given = new InternalRecordWrapper(type).wrap(toRecord(values, type));
        PartitionData partition = new PartitionData(type);
        for (int i = 0; i < type.fields().size(); i++) {
            partition.set(i, given.get(i, Object.class));
        }
        return partition;
    }

    private Values() {}
}
