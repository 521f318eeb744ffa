/**
 * Holds a value against a JSON Schema: as much of the standard as the schema of recordings uses.
 *
 * type, enum, minimum, maximum, maxLength, pattern, minItems, maxItems, items, required, properties, additionalProperties,
 * anyOf, and $ref to "#/$defs/...". A keyword beyond these is a program's mistake and throws.
 */

const SCHEMA_KEYWORDS = new Set(['$schema', 'title', '$defs', '$ref', 'type', 'enum', 'minimum', 'maximum', 'maxLength', 'pattern',
  'minItems', 'maxItems', 'items', 'required', 'properties', 'additionalProperties', 'anyOf']);

function kindOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

function isOfType(value, type) {
  return type === 'integer' ? Number.isInteger(value) : kindOf(value) === type;
}

/** @returns {{where: string, what: string} | null} the first thing that is wrong */
export function schemaFault(value, schema, root = schema, where = '') {
  const unknown = Object.keys(schema).find((name) => !SCHEMA_KEYWORDS.has(name));
  if (unknown) throw new Error(`The schema says ${unknown}, which is not checked here.`);
  if (schema.$ref) return schemaFault(value, root.$defs[schema.$ref.replace('#/$defs/', '')], root, where);
  const fault = (what) => ({ where: where || 'its header', what });
  if (schema.anyOf) {
    const tried = schema.anyOf.map((one) => schemaFault(value, one, root, where));
    return tried.includes(null) ? null : tried.at(-1);
  }
  if (schema.type && ![schema.type].flat().some((type) => isOfType(value, type))) return fault(`is not of type ${[schema.type].flat().join(' or ')}`);
  if (schema.enum && !schema.enum.includes(value)) return fault(`is none of ${schema.enum.join(', ')}`);
  return boundFault(value, schema, fault) ?? insideFault(value, schema, root, where, fault);
}

function boundFault(value, schema, fault) {
  if (typeof value === 'number' && (value < schema.minimum || value > schema.maximum)) return fault(`is ${value}`);
  if (typeof value === 'string' && value.length > schema.maxLength) return fault(`has ${value.length} characters`);
  if (typeof value === 'string' && schema.pattern && !new RegExp(schema.pattern).test(value)) return fault(`does not match ${schema.pattern}`);
  if (Array.isArray(value) && (value.length > schema.maxItems || value.length < schema.minItems)) return fault(`has ${value.length} entries`);
  return null;
}

function insideFault(value, schema, root, where, fault) {
  const at = (name) => (where ? `${where}.${name}` : String(name));
  if (Array.isArray(value) && schema.items) return firstFault(value.entries(), (name, inner) => schemaFault(inner, schema.items, root, at(name)));
  if (kindOf(value) !== 'object') return null;
  const missing = schema.required?.find((name) => !Object.hasOwn(value, name));
  if (missing) return fault(`has no ${missing}`);
  return firstFault(Object.entries(value), (name, inner) => {
    const own = schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : schema.additionalProperties;
    return own ? schemaFault(inner, own, root, at(name)) : null;
  });
}

function firstFault(entries, check) {
  for (const [name, inner] of entries) {
    const found = check(name, inner);
    if (found) return found;
  }
  return null;
}
