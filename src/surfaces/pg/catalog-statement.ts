import { randomUUID } from 'node:crypto';
import type { Identity } from '../../../policy/index.js';
import {
  error,
  type FetchResult,
  type Portal,
  type RowWriter,
  type Statement,
  type WireError,
  type WireNotice,
} from '../../../wire/index.js';
import { eachDataRow } from '../../engine/index.js';
import type { Service } from '../../service/service.js';
import {
  askCatalog,
  CatalogFault,
  type CatalogQuestion,
  type CatalogSettings,
  type Catalogs,
  describeCatalog,
  type Lane,
  type Reply,
  type ReplyReport,
  refuseLane,
  type SettingChange,
} from '../catalog/index.js';
import { giveRows } from './give-rows.js';
import { requireSameRights } from './rights.js';
import type { Unrun } from './unrun.js';

/** What a session lends to its catalog statements. */
export interface CatalogSession {
  readonly service: Service;
  readonly catalogs: Catalogs;
  /** Who asks now: a session may renew its token. */
  identity(): Identity;
  /** As whom the session logged in. */
  user(): string;
  /** What the catalog's statements find set. */
  settings(): CatalogSettings;
  /** Sets what a statement asked for by `set_config`. @throws WireError */
  change(changes: readonly SettingChange[]): Promise<void>;
  readonly unrun: Unrun;
  /** What the session may see now, as text. */
  rights(): string;
  /** @throws WireError in a failed transaction block */
  requireUsable(): void;
  /** Says the spine's errors as the protocol does; a WireError passes, and counts as recorded. */
  translated<T>(requestId: string, text: string, run: () => Promise<T>): Promise<T>;
  cancellable<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Those of `notices` that the client wants to hear. */
  audible(notices: readonly WireNotice[]): readonly WireNotice[];
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
    user: session.user(),
    session: session.settings(),
  });
  const first = question();
  return translated(session, first, async () => {
    if (lane.kind !== 'catalog') throw await refuseLane(service, first, lane);
    const prepared = await session.cancellable((signal) => describeCatalog(service, catalogs, first, signal));
    const { described, payment } = prepared;
    const unrun = { record: () => session.translated(first.requestId, '', () => prepared.record()) };
    session.unrun.hold(unrun);
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
          const own = session.unrun.runs(unrun) ? { requestId: first.requestId } : {};
          const next = { ...question(), ...own, payment };
          return session.cancellable((signal) =>
            translated(session, next, async () => {
              const delivery = { values, formats: resultFormats, signal };
              const reply = await askCatalog(service, catalogs, next, described, delivery);
              await session.change(reply.changes);
              return { ...reply, notices: session.audible(reply.notices.map(notice)) };
            }),
          );
        });
      },
    };
  });
}

/** An answer, with the notices that its client is to hear. */
type Told = Omit<Reply, 'notices'> & { readonly notices: readonly WireNotice[] };

/** One run of a catalog statement; its answer is small and already here when the first row is given. */
class CatalogPortal implements Portal {
  readonly #rights: () => string;
  readonly #run: () => Promise<Told>;
  #begun = '';
  #reply: Told | null = null;
  #rows: readonly Uint8Array[] = [];
  #taken = 0;

  constructor(rights: () => string, run: () => Promise<Told>) {
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
        return { suspended: false, tag: reply.tag ?? '', notices: reply.notices };
      }
      this.#rows = reply.rows.flatMap((run) => [...eachDataRow(run)]);
    }
    requireSameRights(this.#begun, this.#rights());
    const end = maxRows === 0 ? this.#rows.length : Math.min(this.#rows.length, this.#taken + maxRows);
    const portion = this.#rows.slice(this.#taken, end);
    this.#taken = end;
    await giveRows(portion, rows);
    const { notices } = this.#reply;
    const first = end === portion.length;
    return {
      suspended: end < this.#rows.length,
      tag: `SELECT ${portion.length}`,
      ...(first ? { notices } : {}),
    };
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
