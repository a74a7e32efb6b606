/** The surface where a hint is shown; each one phrases instructions differently. */
export type Surface = 'rest' | 'wire' | 'cli';

type SurfacePhrase = Readonly<Record<Surface, string>>;

/** The wording of instructions on each surface. The catalogue uses the REST wording; `hintOn` replaces it. */
export const SURFACE_PHRASES = Object.freeze({
  token: {
    rest: 'send `Authorization: Bearer <token>`',
    wire: 'send the token as the password',
    cli: 'name the caller with --subject or --token',
  },
  governed: {
    rest: 'ask with `?governed=true` for what your grants show',
    wire: 'the catalog shows what your grants show',
    cli: 'leave --full out for what your grants show',
  },
  base: {
    rest: 'send `base_version`, or If-Match',
    wire: 'name the version that it is for',
    cli: 'give --base-version',
  },
  diagnostics: {
    rest: '`diagnostics` has all of it',
    wire: 'the author of the change is told of all',
    cli: '--json shows all of it',
  },
  validate: {
    rest: 'POST /osl/validate says what it would change, and for whom',
    wire: 'it has to be validated first',
    cli: '--check says what it would change, and for whom',
  },
  objects: {
    rest: 'GET /osl/objects lists them',
    wire: 'admins may list them',
    cli: '`osl objects` lists them',
  },
  candidates: {
    rest: 'GET /osl/candidates lists them',
    wire: 'admins may list them',
    cli: '`osl discover` lists them',
  },
  compile: {
    rest: 'compile it where the manifest is',
    wire: 'compile it where the manifest is',
    cli: 'compile it where the manifest is: `osl validate`, `osl diff`',
  },
  json: {
    rest: 'ask for JSON',
    wire: 'ask for text',
    cli: 'ask with --json',
  },
  listen: {
    rest: 'POST /osl/subscribe reports changes',
    wire: 'LISTEN takes the channel of an entity, "osl.entities.<name>", and no other',
    cli: 'LISTEN is for the Postgres port, where an entity has the channel "osl.entities.<name>"',
  },
  approval: {
    rest: 'to request it, state the reason in header OSL-Approval-Reason, or as `osl/approval_reason` in `_meta` of an MCP call',
    wire: "to request it, SET osl.approval_reason = '…' and send the query again",
    cli: 'to request it, give --approval-reason',
  },
} satisfies Readonly<Record<string, SurfacePhrase>>);

/** Returns the hint in the wording of `surface`. */
export function hintOn(surface: Surface, hint: string | null): string | null {
  if (hint === null || surface === 'rest') return hint;
  return Object.values<SurfacePhrase>(SURFACE_PHRASES).reduce(
    (text, way) => text.replace(way.rest, () => way[surface]),
    hint,
  );
}
