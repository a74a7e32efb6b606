import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { queryError } from 'osl-compiler';
import { Approvals } from '../../policy/index.js';
import {
  type ApprovalDecision,
  type ApprovalEntry,
  type ApprovalRegistry,
  type ApprovalRequest,
  approvalOf,
  type OpenRequests,
} from '../ask/request/approval-requests.js';
import {
  addApproval,
  approvalsAt,
  type ControlDatabase,
  ControlFault,
  decideStoredApproval,
  revokeStoredApproval,
  type StoredApproval,
} from '../base/control/index.js';
import { bytesOf, createWhole, namesIn } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { Serial } from '../base/serial.js';
import { StartProblem } from '../base/start-problem.js';
import { messageOf } from '../base/thrown.js';

/** Interval in ms at which the store is polled for changes by other processes and gateways. */
const POLL_MS = 1_000;
/** Time in ms without an answer from the store, after which no approval counts. */
const SILENCE_MS = 5_000;

/** The approvals of a data directory or, for several gateways, of the control database. */
export class SharedApprovals implements ApprovalRegistry {
  readonly approvals = new Approvals();
  readonly #store: ApprovalRegistry;
  readonly #isUsed: () => boolean;
  readonly #log: ServiceLog;
  readonly #reads = new Serial();
  #timer: NodeJS.Timeout | null = null;
  #answeredAt = performance.now();
  #isPolling = false;
  #isFailing = false;

  /** @param isUsed true if a grant of the policy needs an approval; otherwise, the store is not polled */
  constructor(store: ApprovalRegistry, isUsed: () => boolean, log: ServiceLog) {
    this.#store = store;
    this.#isUsed = isUsed;
    this.#log = log;
  }

  /** Reads the store, then polls it once a second. After 5 s without an answer from the store, no approval counts. */
  async start(): Promise<this> {
    await this.#poll();
    this.#timer = setInterval(() => void this.#poll(), POLL_MS).unref();
    return this;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  all(): Promise<readonly ApprovalEntry[]> {
    return withApprovalErrors(() => this.#refresh());
  }

  add(request: ApprovalRequest, limits: OpenRequests): Promise<number | null> {
    return withApprovalErrors(() => this.#store.add(request, limits));
  }

  decide(id: string, decision: ApprovalDecision): Promise<boolean> {
    return this.#apply(() => this.#store.decide(id, decision));
  }

  revoke(id: string, end: { readonly by: string; readonly at: number }): Promise<boolean> {
    return this.#apply(() => this.#store.revoke(id, end));
  }

  #apply(change: () => Promise<boolean>): Promise<boolean> {
    return withApprovalErrors(async () => {
      const hasChanged = await change();
      await this.#refresh();
      return hasChanged;
    });
  }

  /** Reads the store. Reads are serialized, so that an older state never replaces a newer one. */
  #refresh(): Promise<readonly ApprovalEntry[]> {
    return this.#reads.run(async () => {
      const startedAt = performance.now();
      const entries = await this.#store.all();
      this.approvals.replace(entries.flatMap((entry) => approvalOf(entry) ?? []));
      this.#answeredAt = startedAt;
      return entries;
    });
  }

  async #poll(): Promise<void> {
    if (performance.now() - this.#answeredAt > SILENCE_MS) this.approvals.replace([]);
    if (this.#isPolling || !this.#isUsed()) return;
    this.#isPolling = true;
    try {
      await this.#refresh();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#log.error('approvals could not be read', { cause: messageOf(error) });
      this.#isFailing = true;
    } finally {
      this.#isPolling = false;
    }
  }
}

/** @throws QueryError E5036 if the control database fails */
async function withApprovalErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ControlFault) throw queryError('approvalsUnavailable', {});
    throw error;
  }
}

/** Returns the limit on open requests that this request would exceed; null if it exceeds none or is stored already. */
function exceededLimit(
  entries: readonly ApprovalEntry[],
  { id, chain }: ApprovalRequest,
  { perChain, perTenant }: OpenRequests,
): number | null {
  if (entries.some(({ request }) => request.id === id)) return null;
  const open = entries.filter(({ decision }) => decision === null);
  const ofSameChain = open.filter(({ request }) => JSON.stringify(request.chain) === JSON.stringify(chain));
  if (ofSameChain.length >= perChain) return perChain;
  return open.length >= perTenant ? perTenant : null;
}

/** Approvals in the control database. */
export function controlApprovals(
  database: ControlDatabase,
  tenant: string,
  gateway: string,
): ApprovalRegistry {
  return Object.freeze({
    all: async () => (await approvalsAt(database, tenant, Date.now())).map(parseEntry),
    add: (request: ApprovalRequest, limits: OpenRequests) => {
      const { id, expiresAt: until } = request;
      const stored = { id, request: JSON.stringify(request), until, gateway };
      return addApproval(database, tenant, stored, (entries) =>
        exceededLimit(entries.map(parseEntry), request, limits),
      );
    },
    decide: (id: string, decision: ApprovalDecision) =>
      decideStoredApproval(database, tenant, id, JSON.stringify(decision), decision.endsAt),
    revoke: (id: string, end: { readonly by: string; readonly at: number }) =>
      revokeStoredApproval(database, tenant, id, JSON.stringify(end)),
  });
}

// casts: only this file writes these texts
function parseEntry({ request, decision, revoked }: StoredApproval): ApprovalEntry {
  return {
    request: JSON.parse(request) as ApprovalRequest,
    decision: decision === null ? null : (JSON.parse(decision) as ApprovalDecision),
    revoked: revoked === null ? null : (JSON.parse(revoked) as ApprovalEntry['revoked']),
  };
}

/** File names: `<id>.request.json`, then `<id>.decision.json` and `<id>.revoked.json`. */
const NAME = /^([0-9a-f-]{36})\.(request|decision|revoked)\.json$/;
type ApprovalFileKind = 'request' | 'decision' | 'revoked';

/**
 * Stores approvals in files of `dir`, for all processes of a data directory. A file is created whole and never changed;
 * the first process to create it decides. Two requests added at once by different processes may exceed a limit by one.
 */
export function fileApprovals(dir: string): ApprovalRegistry {
  const file = (id: string, part: ApprovalFileKind): string => join(dir, `${id}.${part}.json`);
  const all = async (): Promise<readonly ApprovalEntry[]> => {
    const ids = (await namesIn(dir)).flatMap((name) => {
      const [, id = '', part] = NAME.exec(name) ?? [];
      return part === 'request' ? [id] : [];
    });
    const entries: ApprovalEntry[] = [];
    for (const id of ids) {
      const [revoked, decision, request] = [
        await readText(file(id, 'revoked')),
        await readText(file(id, 'decision')),
        await readText(file(id, 'request')),
      ];
      if (request === null) continue; // removed meanwhile
      const entry = parseStoredEntry({ request, decision, revoked }, id);
      if (expiryOf(entry) > Date.now()) entries.push(entry);
      // The request is removed first: without its decision, it would count as open again.
      else
        for (const part of ['request', 'decision', 'revoked'] as const)
          await rm(file(id, part), { force: true });
    }
    return entries.sort((a, b) => a.request.at - b.request.at);
  };
  const additions = new Serial();
  return Object.freeze({
    all,
    add: (request: ApprovalRequest, limits: OpenRequests) =>
      additions.run(async () => {
        const limit = exceededLimit(await all(), request, limits);
        if (limit !== null) return limit;
        await mkdir(dir, { recursive: true, mode: 0o700 });
        await createWhole(file(request.id, 'request'), JSON.stringify(request));
        return null;
      }),
    decide: async (id: string, decision: ApprovalDecision) =>
      (await exists(all, id)) && createWhole(file(id, 'decision'), JSON.stringify(decision)),
    revoke: async (id: string, end: { readonly by: string; readonly at: number }) =>
      (await exists(all, id)) && createWhole(file(id, 'revoked'), JSON.stringify(end)),
  });
}

async function exists(all: () => Promise<readonly ApprovalEntry[]>, id: string): Promise<boolean> {
  return (await all()).some(({ request }) => request.id === id);
}

function expiryOf({ request, decision }: ApprovalEntry): number {
  return decision?.endsAt ?? request.expiresAt;
}

/** @throws StartProblem for a damaged file, so that nothing is approved */
function parseStoredEntry(stored: StoredApproval, id: string): ApprovalEntry {
  try {
    return parseEntry(stored);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new StartProblem(`approvals/${id} in the data directory is damaged: remove its files`);
  }
}

async function readText(file: string): Promise<string | null> {
  return (await bytesOf(file))?.toString('utf8') ?? null;
}
