import { randomUUID } from 'node:crypto';
import type { Identity } from '../../policy/index.js';
import {
  error,
  type FetchResult,
  type Portal,
  type RowWriter,
  type Statement,
  type WireError,
  type WireNotice,
} from '../../wire/index.js';
import {
  askCatalog,
  CatalogFault,
  type CatalogQuestion,
  type Catalogs,
  describeCatalog,
  type Lane,
  type Reply,
  type ReplyReport,
  refuseLane,
} from '../catalog/index.js';
import { eachDataRow } from '../engine/index.js';
import type { Service } from '../service.js';
import { requireSameRights } from './rights.js';

/** What a session lends to its catalog statements. */
export interface CatalogSession {
  readonly service: Service;
  readonly catalogs: Catalogs;
  /** Who asks now: a session may renew its token. */
  identity(): Identity;
  /** What SHOW ALL would answer now. */
  settings(): readonly { readonly name: string; readonly value: string }[];
  /** What the session may see now, as text. */
  rights(): string;
  /** @throws WireError in a failed transaction block */
  requireUsable(): void;
  /** Says the spine's errors as the protocol does; a WireError passes, and counts as recorded. */
  translated<T>(requestId: string, text: string, run: () => Promise<T>): Promise<T>;
  cancellable<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** A statement that the catalog answers, or that is refused since it asks for both. @throws WireError */
export async function catalogStatement(
  session: CatalogSession,
  lane: Exclude<Lane, { readonly kind: 'data' }>,
  text: string,
  parameterTypes: readonly number[],
): Promise<Statement> {
  const { service, catalogs } = session;
  const question = (): CatalogQuestion => ({
    requestId: randomUUID(),
    identity: session.identity(),
    text,
    parameterTypes,
    settings: Object.fromEntries(session.settings().map((s) => [s.name.toLowerCase(), s.value])),
  });
  const first = question();
  return translated(session, first, async () => {
    if (lane.kind !== 'catalog') throw await refuseLane(service, first, lane);
    const described = await describeCatalog(service, catalogs, first);
    return {
      ...described,
      open: ({ parameterFormats, parameters, resultFormats }) => {
        const values = parameters.map((bytes, i) => ({
          format: parameterFormats[i] ?? (0 as const),
          bytes: bytes === null ? null : Buffer.from(bytes), // a copy: the portal may run later
        }));
        const rights = (): string => session.rights();
        return new CatalogPortal(rights, () => {
          session.requireUsable();
          const next = question();
          return session.cancellable((signal) =>
            translated(session, next, () =>
              askCatalog(service, catalogs, next, described, { values, formats: resultFormats, signal }),
            ),
          );
        });
      },
    };
  });
}

/** One run of a catalog statement; its answer is small and already here when the first row is given. */
class CatalogPortal implements Portal {
  readonly #rights: () => string;
  readonly #run: () => Promise<Reply>;
  #begun = '';
  #reply: Reply | null = null;
  #rows: readonly Uint8Array[] = [];
  #taken = 0;

  constructor(rights: () => string, run: () => Promise<Reply>) {
    this.#rights = rights;
    this.#run = run;
  }

  async fetch(maxRows: number, rows: RowWriter): Promise<FetchResult> {
    if (this.#reply === null) {
      this.#begun = this.#rights();
      const reply = await this.#run();
      this.#reply = reply;
      if (maxRows === 0) {
        for (const run of reply.rows) await rows.write(run);
        return { suspended: false, tag: reply.tag ?? '', notices: reply.notices.map(notice) };
      }
      this.#rows = reply.rows.flatMap((run) => [...eachDataRow(run)]);
    }
    requireSameRights(this.#begun, this.#rights());
    const end = maxRows === 0 ? this.#rows.length : Math.min(this.#rows.length, this.#taken + maxRows);
    const portion = this.#rows.slice(this.#taken, end);
    this.#taken = end;
    for (const row of portion) await rows.write(row);
    return { suspended: end < this.#rows.length, tag: `SELECT ${portion.length}` };
  }

  close(): void {
    this.#rows = [];
  }
}

function notice({ severity, sqlstate, message, detail, hint }: ReplyReport): WireNotice {
  const known = SEVERITIES.find((s) => s === severity) ?? 'NOTICE';
  return { severity: known, sqlstate, message, detail: detail ?? undefined, hint: hint ?? undefined };
}

const SEVERITIES: readonly WireNotice['severity'][] = ['NOTICE', 'WARNING', 'INFO', 'LOG', 'DEBUG'];

function translated<T>(
  session: CatalogSession,
  question: CatalogQuestion,
  run: () => Promise<T>,
): Promise<T> {
  return session.translated(question.requestId, question.text, async () => {
    try {
      return await run();
    } catch (failure) {
      throw failure instanceof CatalogFault ? asWireError(failure) : failure;
    }
  });
}

function asWireError({ report }: CatalogFault): WireError {
  const { sqlstate, message, detail, hint, position } = report;
  return error(sqlstate, message, {
    detail: detail ?? undefined,
    hint: hint ?? undefined,
    position: position ?? undefined,
  });
}
