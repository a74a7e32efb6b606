declare const VALUE_TYPE: unique symbol;

/** JSON Schema (2020-12), as in OpenAPI 3.1; `T` is the type of valid values. */
export type JsonShape<T = unknown> = Readonly<Record<string, unknown>> & { readonly [VALUE_TYPE]?: T };

export type ValueOf<S> = S extends JsonShape<infer T> ? T : never;

type ShapeMembers = Readonly<Record<string, JsonShape>>;
type Object<M> = {
  readonly [K in keyof M as K extends `${string}?` ? never : K]: ValueOf<M[K]>;
} & {
  readonly [K in keyof M as K extends `${infer N}?` ? N : never]?: ValueOf<M[K]>;
};

type ShapeLimits = Readonly<Record<string, number | string | boolean>>;

function withDescription(description: string | undefined): { readonly description?: string } {
  return description === undefined ? {} : { description };
}

/**
 * Returns the shape of an object with these members; names ending in `?` are optional. Additional members are allowed,
 * since answers may gain members within v1.
 */
export function object<M extends ShapeMembers>(members: M, description?: string): JsonShape<Object<M>> {
  const names = Object.keys(members);
  return {
    type: 'object',
    ...withDescription(description),
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ''), members[name]])),
    required: names.filter((name) => !name.endsWith('?')),
  };
}

/** Returns the shape of an object in a request, whose unknown members are refused. */
export function exactly<M extends ShapeMembers>(members: M, description?: string): JsonShape<Object<M>> {
  return { ...object(members, description), additionalProperties: false };
}

export function list<T>(
  items: JsonShape<T>,
  description?: string,
  limits: ShapeLimits = {},
): JsonShape<readonly T[]> {
  return { type: 'array', items, ...withDescription(description), ...limits };
}

export function text(description?: string, limits: ShapeLimits = {}): JsonShape<string> {
  return { type: 'string', ...withDescription(description), ...limits };
}

export function textOrNull(description?: string): JsonShape<string | null> {
  return orNull(text(description));
}

export function flag(description?: string): JsonShape<boolean> {
  return { type: 'boolean', ...withDescription(description) };
}

export function count(description?: string): JsonShape<number> {
  return { type: 'integer', minimum: 0, ...withDescription(description) };
}

export function oneOf<const V extends readonly string[]>(...values: V): JsonShape<V[number]> {
  return { type: 'string', enum: values };
}

/** Marks a shape of lower-case strings that requests may write in any case; they are converted when read. */
export function inAnyCase<T extends string>(shape: JsonShape<T>): JsonShape<T> {
  return { ...shape, 'x-any-case': true };
}

/** Returns the shape of a value that has one of these shapes, which must have different JSON types. */
export function either<S extends readonly JsonShape[]>(...shapes: S): JsonShape<ValueOf<S[number]>> {
  return { anyOf: shapes };
}

/** Returns a shape that also allows null, which means the same as omitting the member. */
export function orNull<T>(shape: JsonShape<T>): JsonShape<T | null> {
  if (Array.isArray(shape['anyOf'])) return { ...shape, anyOf: [...shape['anyOf'], { type: 'null' }] };
  const values = Array.isArray(shape['enum']) ? { enum: [...shape['enum'], null] } : {};
  return { ...shape, type: [shape['type'], 'null'].flat(), ...values };
}

export function ref(name: string): JsonShape {
  return { $ref: `${name}#` };
}
