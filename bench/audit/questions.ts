import { randomUUID } from 'node:crypto';
import { access, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type AuditEntry,
  type AuditKind,
  type AuditLog,
  type CommonEntry,
  openAuditLog,
} from '../../audit/index.js';
import { type Measure, measure } from '../report.js';
import { questionAbout } from '../support/audit-entry.js';
import { noLog } from './no-log.js';
import { requireWhole } from './whole.js';

/**
 * The two ways to append records, as whole entries and through templates; and as a baseline, to be subtracted from
 * both, a log that stores nothing.
 */
const WAYS = ['entry', 'form', 'none'] as const;
type Way = (typeof WAYS)[number];

const QUESTION = Buffer.from('SELECT id, owner, balance FROM osl.entities.account WHERE id = 4711\0');

/**
 * Cost of the log per query: a fingerprint, a decision that is waited for, and an outcome that is not, with enough
 * clients to form groups of 1, 16 and 64 queries. Processor time is that of all threads of the process, which does
 * nothing else.
 */
export async function questionsBench(
  root: string,
  rounds: number,
  seconds: number,
): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  // Warm up, so that all of them run compiled code.
  for (const way of WAYS) await run(join(root, `${way}-warm`), way, 64, seconds);
  for (const clients of [1, 16, 64]) {
    for (const way of WAYS) {
      const runs: Run[] = [];
      for (let round = 0; round < rounds; round++) {
        runs.push(await run(join(root, `${way}-${clients}-${round}`), way, clients, seconds));
      }
      const id = `audit.question.c${clients}.${way}`;
      measures.push(
        measure(
          `${id}.cpu_us`,
          'µs of CPU',
          runs.map(({ cpuUs }) => cpuUs),
        ),
        measure(
          `${id}.wait_us`,
          'µs to durable',
          runs.map(({ waitUs }) => waitUs),
        ),
      );
    }
  }
  return measures;
}

interface Run {
  readonly cpuUs: number;
  readonly waitUs: number;
}

async function run(dir: string, way: Way, clients: number, seconds: number): Promise<Run> {
  const real = await openAuditLog({ dir, tenant: 'bench' });
  const log = way === 'none' ? noLog(real) : real;
  const asking = way === 'entry' ? throughEntries(log) : throughForms(log);
  const before = process.cpuUsage();
  const { questions, waitedMs } = await ask(asking, clients, seconds);
  const { user, system } = process.cpuUsage(before);
  await log.close();
  if (way !== 'none') await requireWhole(dir, 2 * questions);
  rmSync(dir, { recursive: true });
  return { cpuUs: (user + system) / questions, waitUs: (1_000 * waitedMs) / questions };
}

interface Asking {
  /** Records that a query is allowed; calls `durable` once the record is durable. */
  decide(requestId: string, fingerprint: string, durable: () => void): void;
  /** Records the outcome. */
  end(requestId: string, fingerprint: string): void;
  fingerprint(): string;
}

function ask(
  asking: Asking,
  clients: number,
  seconds: number,
): Promise<{ readonly questions: number; readonly waitedMs: number }> {
  const until = performance.now() + 1_000 * seconds;
  const database = elsewhere();
  const wire = elsewhere();
  let questions = 0;
  let waitedMs = 0;
  let open = clients;
  return new Promise((resolve) => {
    const client = (): void => {
      if (performance.now() > until) {
        open -= 1;
        if (open === 0) resolve({ questions, waitedMs });
        return;
      }
      const requestId = randomUUID();
      const fingerprint = asking.fingerprint();
      const asked = performance.now();
      asking.decide(requestId, fingerprint, () => {
        waitedMs += performance.now() - asked;
        questions += 1;
        database(() => {
          asking.end(requestId, fingerprint);
          wire(client);
        });
      });
    };
    for (let i = 0; i < clients; i++) client();
  });
}

/**
 * Simulates the database or a client: takes a short time on another thread, shared by all callers that arrive
 * meanwhile.
 */
function elsewhere(): (then: () => void) => void {
  let waiting: (() => void)[] = [];
  let busy = false;
  const go = (): void => {
    const served = waiting;
    waiting = [];
    busy = served.length > 0;
    if (!busy) return;
    access('.', () => {
      for (const then of served) then();
      go();
    });
  };
  return (then) => {
    waiting.push(then);
    if (busy) return;
    busy = true;
    setImmediate(go);
  };
}

const REQUEST: Omit<CommonEntry, 'kind'> = questionAbout('account');
const DECISION: CommonEntry = { ...REQUEST, kind: 'decision', decision: 'allow' };
const OUTCOME: CommonEntry = { ...REQUEST, kind: 'outcome', outcome: 'ok' };

function throughEntries(log: AuditLog): Asking {
  const text = QUESTION.toString('utf8', 0, QUESTION.length - 1);
  return {
    fingerprint: () => log.fingerprint(text),
    decide(requestId, fingerprint, durable) {
      log.append(entry('decision', requestId, fingerprint, { decision: 'allow' }), taken(durable));
    },
    end(requestId, fingerprint) {
      const ended = { outcome: 'ok', rows: 1, duration_us: 250 } as const;
      log.append(entry('outcome', requestId, fingerprint, ended), nothing);
    },
  };
}

/** Built member by member, as the gateway does: spreading `REQUEST` makes a dictionary-mode object, at 5 µs each. */
function entry(
  kind: AuditKind,
  request_id: string,
  statement_hmac: string,
  fields: Partial<AuditEntry>,
): AuditEntry {
  const { tenant, surface, action, subject = null, chain = [], form = null, objects = [] } = REQUEST;
  const { versions = null } = REQUEST;
  return {
    kind,
    request_id,
    tenant,
    surface,
    action,
    subject,
    chain,
    form,
    objects,
    versions,
    statement_hmac,
    ...fields,
  };
}

function throughForms(log: AuditLog): Asking {
  const decision = log.form(DECISION);
  const outcome = log.form(OUTCOME);
  return {
    fingerprint: () => log.fingerprintOf(QUESTION, 0, QUESTION.length - 1),
    decide(requestId, fingerprint, durable) {
      log.appendForm(decision, requestId, fingerprint, null, null, taken(durable));
    },
    end(requestId, fingerprint) {
      log.appendForm(outcome, requestId, fingerprint, 1, 250, nothing);
    },
  };
}

function taken(durable: () => void): (error: Error | null) => void {
  return (error) => {
    if (error !== null) throw error;
    durable();
  };
}

function nothing(): void {
  return;
}
