/** Types between the bench and the endpoints that it tries; README.md shows how to add one. */

/** The worlds of a bench. `a` and `copy` are equal; `b` differs from them only in what the clerk may not see. */
export const WORLDS = ['a', 'copy', 'b'] as const;
export type WorldName = (typeof WORLDS)[number];

/** Databases of the worlds, with the tables of `world.ts` and no protection. */
export interface Worlds {
  /** URL of a world's database, for its owner. */
  readonly owner: Readonly<Record<WorldName, string>>;
}

/** Differences from the usual login. */
export interface LoginChanges {
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  /** The startup parameter `options`. */
  readonly options?: string;
  readonly applicationName?: string;
}

/** All that a caller can tell apart; equal answers are equal as JSON. */
export interface EndpointAnswer {
  /** Names and types of the columns; empty if there is no result. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
  /** Command tag, such as `SELECT 3`. */
  readonly tag: string | null;
  readonly notices: readonly string[];
  /** Code, message, detail, hint and position; null if it succeeded. */
  readonly error: string | null;
}

/**
 * Who opens a session. The `clerk` attacks. The `admin` may see everything and the `peer` what the clerk may not, a
 * caller of the same role in the region `south`: they ask before the clerk, to fill what callers share.
 */
export type BenchCaller = 'clerk' | 'admin' | 'peer';

/** Languages of statements. Statements in other languages than SQL are sent unchanged. */
export type StatementLanguage = 'sql' | 'graphql' | 'mcp' | 'directus';

export interface EndpointSession {
  /** Asks one statement. Throws `NotExpressible` if the endpoint has no way to say it. */
  ask(text: string, values?: readonly (string | null)[]): Promise<EndpointAnswer>;
  close(): Promise<void>;
}

/** A statement or login that an endpoint has no form for. */
export class NotExpressible extends Error {
  override readonly name = 'NotExpressible';
}

export interface Endpoint {
  /** One sentence: name and version of the product, and the protection that it uses. */
  readonly what: string;
  /** Languages that it understands; SQL alone by default. */
  readonly languages?: readonly StatementLanguage[];
  /** Callers besides the clerk; none by default. */
  readonly others?: readonly Exclude<BenchCaller, 'clerk'>[];
  open(world: WorldName, login?: LoginChanges, caller?: BenchCaller): Promise<EndpointSession>;
  close(): Promise<void>;
}

/** A way to protect data, which the bench can try. */
export interface EndpointKind {
  readonly name: string;
  /** `visible`: its worlds have nothing that the clerk may not see, so that nothing can leak. */
  readonly data: 'everything' | 'visible';
  /** Endpoints with the same text share their worlds, and may share the processes that they start. */
  readonly shares?: string;
  /** Protects the worlds, and makes ready to be asked. */
  start(worlds: Worlds): Promise<Endpoint>;
}
