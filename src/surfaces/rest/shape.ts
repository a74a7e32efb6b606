/** Where a shape keeps the type of what it admits: there is nothing at run time. */
declare const ADMITS: unique symbol;

/** JSON Schema (2020-12), as OpenAPI 3.1 takes it; `T` is the type of what it admits. */
export type Shape<T = unknown> = Readonly<Record<string, unknown>> & { readonly [ADMITS]?: T };

/** What a shape admits. */
export type ValueOf<S> = S extends Shape<infer T> ? T : never;

type Members = Readonly<Record<string, Shape>>;
type Object<M> = {
  readonly [K in keyof M as K extends `${string}?` ? never : K]: ValueOf<M[K]>;
} & {
  readonly [K in keyof M as K extends `${infer N}?` ? N : never]?: ValueOf<M[K]>;
};

/** What limits a value beyond its type: other keywords of JSON Schema. */
type Limits = Readonly<Record<string, number | string | boolean>>;

function withDescription(description: string | undefined): { readonly description?: string } {
  return description === undefined ? {} : { description };
}

/**
 * An object of these members; a name that ends in `?` may be missing. Answers may get more members within v1, so
 * nothing is said against others.
 */
export function object<M extends Members>(members: M, description?: string): Shape<Object<M>> {
  const names = Object.keys(members);
  return {
    type: 'object',
    ...withDescription(description),
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ''), members[name]])),
    required: names.filter((name) => !name.endsWith('?')),
  };
}

/** An object of a request, where a member that is not known is refused. */
export function exactly<M extends Members>(members: M, description?: string): Shape<Object<M>> {
  return { ...object(members, description), additionalProperties: false };
}

export function list<T>(items: Shape<T>, description?: string, limits: Limits = {}): Shape<readonly T[]> {
  return { type: 'array', items, ...withDescription(description), ...limits };
}

export function text(description?: string, limits: Limits = {}): Shape<string> {
  return { type: 'string', ...withDescription(description), ...limits };
}

export function textOrNull(description?: string): Shape<string | null> {
  return orNull(text(description));
}

export function flag(description?: string): Shape<boolean> {
  return { type: 'boolean', ...withDescription(description) };
}

export function count(description?: string): Shape<number> {
  return { type: 'integer', minimum: 0, ...withDescription(description) };
}

export function oneOf<const V extends readonly string[]>(...values: V): Shape<V[number]> {
  return { type: 'string', enum: values };
}

/** Texts of lower case that a request may write in any; they are read as the shape has them. */
export function inAnyCase<T extends string>(shape: Shape<T>): Shape<T> {
  return { ...shape, 'x-any-case': true };
}

/** A value of one of these shapes, which differ in their types of JSON. */
export function either<S extends readonly Shape[]>(...shapes: S): Shape<ValueOf<S[number]>> {
  return { anyOf: shapes };
}

/** Null, where it says the same as no member. */
export function orNull<T>(shape: Shape<T>): Shape<T | null> {
  if (Array.isArray(shape['anyOf'])) return { ...shape, anyOf: [...shape['anyOf'], { type: 'null' }] };
  const values = Array.isArray(shape['enum']) ? { enum: [...shape['enum'], null] } : {};
  return { ...shape, type: [shape['type'], 'null'].flat(), ...values };
}

/** A component of the document by name. */
export function ref(name: string): Shape {
  return { $ref: `${name}#` };
}
