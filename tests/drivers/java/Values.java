import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.DataGetters;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.IntType;
import org.apache.paimon.types.LocalZonedTimestampType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.types.TimestampType;
import org.apache.paimon.utils.InternalRowUtils;

/** JSON <-> Paimon values, one text per value. What has no JSON number (NaN, -0.0) travels as a string. */
final class Values {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("HH:mm:ss.SSS");

    static ArrayNode toJson(InternalRow row, RowType type) {
        ArrayNode result = NODES.arrayNode(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            result.add(toJson(row, i, type.getTypeAt(i)));
        }
        return result;
    }

    static JsonNode toJson(DataGetters row, int i, DataType type) {
        Object value = InternalRowUtils.get(row, i, type);
        return value == null ? NODES.nullNode() : toJson(value, type);
    }

    private static JsonNode toJson(Object value, DataType type) {
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return NODES.booleanNode((Boolean) value);
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                return NODES.numberNode(((Number) value).longValue());
            case FLOAT:
            case DOUBLE:
                return floating(((Number) value).doubleValue());
            case DECIMAL:
                return NODES.textNode(((Decimal) value).toBigDecimal().toPlainString());
            case CHAR:
            case VARCHAR:
                return NODES.textNode(value.toString());
            case BINARY:
            case VARBINARY:
                return NODES.textNode(HexFormat.of().formatHex((byte[]) value));
            case DATE:
                return NODES.textNode(LocalDate.ofEpochDay((Integer) value).toString());
            case TIME_WITHOUT_TIME_ZONE:
                return NODES.textNode(TIME.format(LocalTime.ofNanoOfDay((Integer) value * 1_000_000L)));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return NODES.textNode(timestamp((Timestamp) value, ((TimestampType) type).getPrecision()));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                int precision = ((LocalZonedTimestampType) type).getPrecision();
                return NODES.textNode(timestamp((Timestamp) value, precision) + "Z");
            case ARRAY:
                return items((InternalArray) value, ((ArrayType) type).getElementType());
            case MAP:
                return entries((InternalMap) value, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return entries((InternalMap) value, ((MultisetType) type).getElementType(), new IntType());
            case ROW:
                return toJson((InternalRow) value, (RowType) type);
            default:
                throw new UnsupportedOperationException("type: not one that the driver knows: " + type);
        }
    }

    private static ArrayNode items(InternalArray array, DataType type) {
        ArrayNode result = NODES.arrayNode(array.size());
        for (int i = 0; i < array.size(); i++) {
            result.add(toJson(array, i, type));
        }
        return result;
    }

    /** Pairs of key and value, in the order of the map. */
    private static ArrayNode entries(InternalMap map, DataType key, DataType value) {
        ArrayNode result = NODES.arrayNode(map.size());
        for (int i = 0; i < map.size(); i++) {
            result.add(NODES.arrayNode(2).add(toJson(map.keyArray(), i, key)).add(toJson(map.valueArray(), i, value)));
        }
        return result;
    }

    private static JsonNode floating(double value) {
        boolean negativeZero = value == 0 && Double.doubleToRawLongBits(value) != 0;
        if (Double.isNaN(value) || Double.isInfinite(value) || negativeZero) {
            return NODES.textNode(Double.toString(value));
        }
        return NODES.numberNode(value);
    }

    private static String timestamp(Timestamp value, int precision) {
        String pattern = "uuuu-MM-dd'T'HH:mm:ss" + (precision == 0 ? "" : "." + "S".repeat(precision));
        return DateTimeFormatter.ofPattern(pattern).format(value.toLocalDateTime());
    }

    static GenericRow toRow(JsonNode values, int skip, RowType type) {
        if (values.size() - skip != type.getFieldCount()) {
            throw new IllegalArgumentException(
                    "row " + values + ": expected " + type.getFieldCount() + " values of " + type);
        }
        GenericRow row = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            row.setField(i, toValue(values.get(i + skip), type.getTypeAt(i)));
        }
        return row;
    }

    static Object toValue(JsonNode json, DataType type) {
        if (json.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return json.booleanValue();
            case TINYINT:
                return (byte) json.intValue();
            case SMALLINT:
                return (short) json.intValue();
            case INTEGER:
                return json.intValue();
            case BIGINT:
                return json.longValue();
            case FLOAT:
                return json.isTextual() ? Float.parseFloat(json.asText()) : json.floatValue();
            case DOUBLE:
                return json.isTextual() ? Double.parseDouble(json.asText()) : json.doubleValue();
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return Decimal.fromBigDecimal(
                        new BigDecimal(json.asText()), decimal.getPrecision(), decimal.getScale());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(json.asText());
            case BINARY:
            case VARBINARY:
                return bytes(json);
            case DATE:
                return json.isNumber() ? json.intValue() : (int) LocalDate.parse(json.asText()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                return json.isNumber()
                        ? json.intValue()
                        : (int) (LocalTime.parse(json.asText()).toNanoOfDay() / 1_000_000L);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return timestamp(json);
            case ARRAY:
                Object[] items = new Object[json.size()];
                for (int i = 0; i < items.length; i++) {
                    items[i] = toValue(json.get(i), ((ArrayType) type).getElementType());
                }
                return new GenericArray(items);
            case MAP:
                return map(json, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return map(json, ((MultisetType) type).getElementType(), new IntType());
            case ROW:
                return toRow(json, 0, (RowType) type);
            default:
                throw new UnsupportedOperationException("type: not one that the driver knows: " + type);
        }
    }

    private static GenericMap map(JsonNode pairs, DataType key, DataType value) {
        Map<Object, Object> map = new LinkedHashMap<>();
        pairs.forEach(pair -> map.put(toValue(pair.get(0), key), toValue(pair.get(1), value)));
        return new GenericMap(map);
    }

    /** Hex text, or {"base64": text}. */
    private static byte[] bytes(JsonNode json) {
        return json.isObject()
                ? Base64.getDecoder().decode(json.required("base64").asText())
                : HexFormat.of().parseHex(json.asText());
    }

    /** ISO text in UTC (a trailing Z is ignored), or [milliseconds, nanoseconds of the millisecond]. */
    private static Timestamp timestamp(JsonNode json) {
        if (json.isArray()) {
            return Timestamp.fromEpochMillis(json.get(0).longValue(), json.get(1).intValue());
        }
        String text = json.asText();
        return Timestamp.fromLocalDateTime(
                LocalDateTime.parse(text.endsWith("Z") ? text.substring(0, text.length() - 1) : text));
    }

    private Values() {}
}
