import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.RowType;

/** {op, field, values} and {op: and|or, children} -> Paimon predicates over one row type. */
final class Predicates {
    static Predicate parse(JsonNode filter, RowType type) {
        if (filter.isMissingNode() || filter.isNull()) {
            return null;
        }
        String op = filter.required("op").asText();
        if (op.equals("and") || op.equals("or")) {
            List<Predicate> children = new ArrayList<>();
            filter.required("children").forEach(child -> children.add(parse(child, type)));
            return op.equals("and") ? PredicateBuilder.and(children) : PredicateBuilder.or(children);
        }
        return leaf(op, filter, type);
    }

    static void collectFields(JsonNode filter, Set<String> fields) {
        if (filter.has("field")) {
            fields.add(filter.get("field").asText());
        }
        filter.path("children").forEach(child -> collectFields(child, fields));
    }

    private static Predicate leaf(String op, JsonNode filter, RowType type) {
        PredicateBuilder builder = new PredicateBuilder(type);
        int index = builder.indexOf(filter.required("field").asText());
        List<Object> literals = literals(filter, type.getTypeAt(index));
        switch (op) {
            case "eq":
                return builder.equal(index, literals.get(0));
            case "ne":
                return builder.notEqual(index, literals.get(0));
            case "lt":
                return builder.lessThan(index, literals.get(0));
            case "le":
                return builder.lessOrEqual(index, literals.get(0));
            case "gt":
                return builder.greaterThan(index, literals.get(0));
            case "ge":
                return builder.greaterOrEqual(index, literals.get(0));
            case "in":
                return builder.in(index, literals);
            case "between":
                return builder.between(index, literals.get(0), literals.get(1));
            case "is_null":
                return builder.isNull(index);
            case "is_not_null":
                return builder.isNotNull(index);
            default:
                throw new IllegalArgumentException("filter op: unknown in " + filter);
        }
    }

    private static List<Object> literals(JsonNode filter, DataType type) {
        List<Object> result = new ArrayList<>();
        filter.path("values").forEach(value -> result.add(Values.toValue(value, type)));
        return result;
    }

    private Predicates() {}
}
