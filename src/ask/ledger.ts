import {
  type Catalog,
  type ErrorName,
  type Form,
  type GovernedPlan,
  type Mentioned,
  mentionedIn,
  QueryError,
} from 'osl-compiler';
import type { AuditEntry, AuditOutcome } from '../../policy/audit/index.js';
import { AuditUnavailable } from '../../policy/audit/index.js';
import type { Identity } from '../../policy/index.js';
import type { Model, Service } from '../service/service.js';
import type { Mark } from './parsing/marks.js';
import type { Body, Call } from './question.js';
import type { SampleRequest } from './sample.js';

/** What a call reads: of a question its plan says so. */
export interface Touched {
  /** Null where no query was asked. */
  readonly form: Form | null;
  readonly objects: readonly string[];
}

/** A word that is looked up, a draft that is judged; recorded as statements are, by its fingerprint. */
interface Term {
  readonly kind: 'term' | 'draft';
  readonly text: string;
}

/** Writes the two records of one request. The decision is durable before a byte of an answer leaves. */
export class Ledger {
  readonly #service: Service;
  readonly #call: Call;
  readonly #action: string;
  readonly #started = performance.now();
  #ended: number | null = null;
  readonly #statement: string | null;
  readonly #body: Body | SampleRequest | Term | null;
  #fingerprint: string | null = null;
  #identity: Identity | null = null;
  #model: Model | null = null;
  #touched: Touched | null = null;
  #plan: string | null = null;
  /** The decision is not in the log, so an outcome would be of nothing. */
  #unrecorded = false;

  /** `body` is what the call asks, where it asks something. */
  constructor(service: Service, call: Call, action: string, body: Body | SampleRequest | Term | null = null) {
    this.#service = service;
    this.#call = call;
    this.#action = action;
    this.#statement = body === null ? null : statementOf(body);
    this.#body = body;
  }

  /** Whether the caller has proved who it is. */
  get identified(): boolean {
    return this.#identity !== null;
  }

  knows(identity: Identity, model: Model): void {
    this.#identity = identity;
    this.#model = model;
  }

  touches(touched: Touched): void {
    this.#touched = touched;
  }

  /** What the call is known by while `text`, which it asks, is compiled. */
  mark(text: string): Mark {
    const { requestId: request_id, surface } = this.#call;
    return {
      request_id,
      surface,
      action: this.#action,
      subject: this.#identity?.subject ?? null,
      chain: this.#identity?.chain ?? [],
      statement_hmac: this.#statementHmac(),
      size: text.length,
    };
  }

  /** Says that `plan` is going to run; `allow` follows at once, so that both are on disk together. */
  reads(plan: GovernedPlan): void {
    this.#plan = this.#service.lineage?.note(plan, this.#call.requestId) ?? null;
  }

  /** The work is done, whenever that is recorded. */
  done(): void {
    this.#ended = performance.now();
  }

  /** Records that the question is answered. @throws AuditUnavailable */
  async allow(): Promise<void> {
    try {
      await this.#service.audit.append(this.#entry('decision', { decision: 'allow' }));
    } catch (error) {
      this.#unrecorded = true;
      throw error;
    }
  }

  /** Records a refusal: an error of the catalogue, or an SQLSTATE of the protocol. @throws AuditUnavailable */
  async refuse(error: unknown): Promise<void> {
    const decision =
      error instanceof QueryError && (error.http === 401 || error.http === 403) ? 'deny' : 'error';
    const code = typeof error === 'string' ? error : codeOf(error);
    this.#touched ??= this.#asked(error);
    await this.#service.audit.append(this.#entry('decision', { decision, code }));
  }

  /**
   * What a refused call asked for, so that the log answers who tried to read what: declared objects by their names,
   * all else as a keyed fingerprint, so that no slip of a hand or a pasted secret stands in the log. Nothing of
   * strangers, and of calls that were refused before their text was looked at.
   */
  #asked(error: unknown): Touched | null {
    if (this.#identity === null || this.#model === null || this.#body === null) return null;
    if (error instanceof QueryError && UNREAD.has(error.entry)) return null;
    const { declared, undeclared } = askedBy(this.#body, this.#model.manifest.catalog);
    const hidden = undeclared.map((name) => `undeclared:${this.#service.audit.fingerprint(name)}`);
    return { form: null, objects: [...declared, ...hidden] };
  }

  /** Records how it ended. While the disk fails the log keeps it, and refuses everything else. */
  outcome(outcome: AuditOutcome, rows: number, error: unknown = null): void {
    if (this.#unrecorded) return;
    const duration = Math.round(1_000 * ((this.#ended ?? performance.now()) - this.#started));
    const entry = this.#entry('outcome', {
      outcome,
      rows,
      duration_us: duration,
      code: error === null ? null : codeOf(error),
    });
    this.#service.audit.append(entry, (failure) => {
      if (failure !== null) this.#service.log.error('audit outcome lost', { request_id: entry.request_id });
    });
  }

  #entry(kind: 'decision' | 'outcome', fields: Partial<AuditEntry>): AuditEntry {
    const { requestId, surface } = this.#call;
    const model = this.#model;
    return {
      kind,
      request_id: requestId,
      tenant: this.#service.tenant,
      surface,
      action: this.#action,
      subject: this.#identity?.subject ?? null,
      chain: this.#identity?.chain ?? [],
      form: this.#touched?.form ?? null,
      objects: this.#touched?.objects ?? [],
      versions:
        model === null ? null : { manifest: model.manifest.version, policy: model.snapshot?.version ?? null },
      statement_hmac: this.#statementHmac(),
      ...(this.#plan !== null && { plan: this.#plan }),
      ...fields,
    };
  }

  /** One for both records, though a segment may end in between. */
  #statementHmac(): string | null {
    if (this.#statement === null) return null;
    this.#fingerprint ??= this.#service.audit.fingerprint(this.#statement);
    return this.#fingerprint;
  }
}

/** Refusals of what was not, or not wholly, read. */
const UNREAD: ReadonlySet<ErrorName> = new Set<ErrorName>([
  'rateLimited',
  'tooLarge',
  'tooDeep',
  'noSnapshot',
]);

/** UTF-16 units of the longest refused text that is read once more for its names. */
const LONGEST_READ = 65_536;

function askedBy(body: Body | SampleRequest | Term, catalog: Catalog): Mentioned {
  if ('text' in body && body.text.length > LONGEST_READ) return { declared: [], undeclared: [] };
  switch (body.kind) {
    case 'osql':
      return mentionedIn(body.text, 'semantic', catalog);
    case 'sql':
      return mentionedIn(body.text, 'physical', catalog);
    case 'wire':
      return mentionedIn(body.text, 'either', catalog);
    case 'metrics':
      return sorted(body.request.metrics.map((m) => [m.name, catalog.metrics.has(m.name), 'metrics']));
    case 'table':
      return sorted([[body.name, catalog.relations.has(body.name), 'entities']]);
    case 'facet':
      return sorted([[body.name, catalog.facets.has(body.name), 'facets']]);
    case 'term':
    case 'draft':
      return { declared: [], undeclared: [] };
    default: {
      const unknown: never = body;
      return unknown;
    }
  }
}

function sorted(names: readonly (readonly [name: string, declared: boolean, room: string])[]): Mentioned {
  return {
    declared: names.flatMap(([name, is, room]) => (is ? [`osl.${room}.${name}`] : [])).sort(),
    undeclared: names.flatMap(([name, is]) => (is ? [] : [name])).sort(),
  };
}

function statementOf(body: Body | SampleRequest | Term): string {
  switch (body.kind) {
    case 'osql':
    case 'sql':
    case 'term':
    case 'draft':
    case 'wire':
      return body.text;
    case 'metrics':
      return JSON.stringify(body.request);
    case 'table':
    case 'facet':
      return JSON.stringify([body.kind, body.name]);
    default: {
      const unknown: never = body;
      return unknown;
    }
  }
}

function codeOf(error: unknown): string {
  if (error instanceof QueryError) return error.code;
  if (error instanceof AuditUnavailable) return 'E5030';
  return 'E5000';
}
