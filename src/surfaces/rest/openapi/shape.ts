/** JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
export type Shape = Readonly<Record<string, unknown>>;

/**
 * An object of these members; a name that ends in `?` may be missing. Answers may get more members within v1, so
 * nothing is said against others.
 */
export function object(members: Readonly<Record<string, Shape>>, description?: string): Shape {
  const names = Object.keys(members);
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ''), members[name]])),
    required: names.filter((name) => !name.endsWith('?')),
  };
}

/** The same for a request, where what is not known is refused. */
export function exactly(members: Readonly<Record<string, Shape>>, description?: string): Shape {
  return { ...object(members, description), additionalProperties: false };
}

export function list(items: Shape, description?: string): Shape {
  return { type: 'array', items, ...(description === undefined ? {} : { description }) };
}

export function text(description?: string): Shape {
  return { type: 'string', ...(description === undefined ? {} : { description }) };
}

export function textOrNull(description?: string): Shape {
  return { type: ['string', 'null'], ...(description === undefined ? {} : { description }) };
}

export function flag(description?: string): Shape {
  return { type: 'boolean', ...(description === undefined ? {} : { description }) };
}

export function count(description?: string): Shape {
  return { type: 'integer', minimum: 0, ...(description === undefined ? {} : { description }) };
}

export function oneOf(...values: readonly string[]): Shape {
  return { type: 'string', enum: values };
}

/** A component of the document by name. */
export function ref(name: string): Shape {
  return { $ref: `${name}#` };
}
