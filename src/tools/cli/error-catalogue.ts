import { ERRORS } from 'osl-compiler';

/** One way in which an error code comes about. Parts of the message that vary stand in `<…>`. */
export interface ErrorShape {
  readonly code: string;
  readonly name: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: string;
  readonly hint: string | null;
}

/** The whole catalogue, by code; entries of one code in the catalogue's own order. */
export function catalogue(): readonly ErrorShape[] {
  return Object.entries(ERRORS)
    .map(([name, entry]) => shapeOf(name, entry as unknown as AnyEntry)) // each entry takes its own parameters
    .sort((a, b) => (a.code < b.code ? -1 : a.code > b.code ? 1 : 0));
}

interface AnyEntry {
  readonly code: string;
  readonly sqlstate: string;
  readonly http: number;
  readonly message: (parameters: unknown) => string;
  readonly hint: (parameters: unknown) => string | null;
}

function shapeOf(name: string, entry: AnyEntry): ErrorShape {
  const { code, sqlstate, http } = entry;
  return { code, name, sqlstate, http, message: entry.message(PLACEHOLDERS), hint: entry.hint(PLACEHOLDERS) };
}

/** Has every parameter; its value is its own name. */
const PLACEHOLDERS: unknown = new Proxy(Object.freeze({}), {
  get: (_, name) => `<${String(name)}>`,
});
