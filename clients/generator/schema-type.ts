import type { OpenApiSchema } from './document.js';

const REF = '#/components/schemas/';

/** TypeScript type of the values that `schema` allows; `depth` is the indentation level. */
export function typeOf(schema: OpenApiSchema, depth = 0): string {
  if (schema.$ref !== undefined) return referred(schema.$ref);
  const variants = schema.oneOf ?? schema.anyOf;
  if (variants !== undefined) {
    const all = union(variants.map((variant) => typeOf(variant, depth)));
    return isExclusive(variants) ? `${ONE_OF}<${all}>` : all;
  }
  if (schema.enum !== undefined && schema['x-extensible'] !== true)
    return union(schema.enum.map((value) => JSON.stringify(value)));
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  return types.length === 0 ? 'unknown' : union(types.map((type) => typed(type, schema, depth)));
}

/** Name of the generated type for exclusive variants. */
export const ONE_OF = 'OneOf';

/** True for closed objects, of which a value matches exactly one; TypeScript's unions would accept mixtures. */
function isExclusive(variants: readonly OpenApiSchema[]): boolean {
  return variants.length > 1 && variants.every((variant) => variant.additionalProperties === false);
}

function typed(type: string, schema: OpenApiSchema, depth: number): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return arrayOf(schema.items === undefined ? 'unknown' : typeOf(schema.items, depth));
    case 'object':
      return schema.properties === undefined ? byName(schema, depth) : members(schema, depth);
    default:
      throw new Error(`a schema of the unknown type ${type}`);
  }
}

/** Type of an object whose member names are not known in advance. */
function byName({ additionalProperties: value }: OpenApiSchema, depth: number): string {
  return `Readonly<Record<string, ${typeof value === 'object' ? typeOf(value, depth) : 'unknown'}>>`;
}

/** Members of an object in braces; on one line if they are short and have no comments. */
export function members({ properties = {}, required = [] }: OpenApiSchema, depth: number): string {
  const indent = '  '.repeat(depth + 1);
  const all = Object.entries(properties).map(([name, schema]) => ({
    about: comment(schema.description, indent),
    member: `readonly ${keyOf(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema, depth + 1)};`,
  }));
  const line = `{ ${all.map(({ member }) => member).join(' ')} }`;
  const isShort = line.length + indent.length <= MAX_WIDTH && !line.includes('\n');
  if (depth > 0 && isShort && all.every(({ about }) => about === '')) return line;
  const lines = all.map(({ about, member }) => `${about}${indent}${member}\n`);
  return `{\n${lines.join('')}${'  '.repeat(depth)}}`;
}

const MAX_WIDTH = 110;

/** Documentation comment on a separate line; empty if there is no description. */
export function comment(description: string | undefined, indent: string): string {
  return description === undefined ? '' : `${indent}/** ${description.replaceAll('*/', '*\\/')} */\n`;
}

export function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function referred(ref: string): string {
  if (!ref.startsWith(REF)) throw new Error(`a reference to ${ref}`);
  return ref.slice(REF.length);
}

function union(types: readonly string[]): string {
  return types.length === 0 ? 'never' : [...new Set(types)].join(' | ');
}

function arrayOf(element: string): string {
  return /^[\w$]+$|^\{[^}]*\}$/.test(element) ? `readonly ${element}[]` : `readonly (${element})[]`;
}
