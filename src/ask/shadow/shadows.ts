import { queryError } from 'osl-compiler';
import { compileSnapshotInSteps, PolicyProblems, type PolicySnapshot } from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import { type Manifest, ManifestProblems, parsePolicyDocument } from '../../model/manifest/index.js';
import type { Model } from '../../model/served-model.js';
import type { ShadowHolder } from '../data/parts.js';
import type { CompilingParts } from '../data/planning.js';
import { ShadowPolicy } from './shadow-policy.js';
import { type ShadowFigures, sumFigures } from './shadow-report.js';

/** A policy to compare with the served one. Times are in RFC 3339. */
export interface ShadowStart {
  /** The policy as YAML text. */
  readonly policy: string;
  readonly by: string;
  readonly started_at: string;
  /** End of the comparison, unless it is stopped earlier. */
  readonly until: string;
}

/** Report of a comparison in one process, or the sum of the reports of several processes. */
export interface ShadowReport extends ShadowFigures, Omit<ShadowStart, 'policy'> {
  /** Version of the shadow policy. */
  readonly policy: string;
  readonly state: 'running' | 'stopped' | 'expired';
  /** End of the comparison; null while the comparison is running. */
  readonly ended_at: string | null;
}

/** Command to all processes of a server. */
export type ShadowCommand =
  | { readonly do: 'start'; readonly start: ShadowStart }
  | { readonly do: 'report' }
  | { readonly do: 'stop' };

/** Maximum number of policy problems listed in an error. */
const MOST_PROBLEMS = 5;

/** Compiles the text of a shadow policy. @throws QueryError E0534 */
export async function shadowSnapshot(
  text: string,
  { manifest, snapshot: served }: Model,
): Promise<PolicySnapshot> {
  try {
    const { document } = parsePolicyDocument(text, 'policy');
    const { catalog, tenant } = manifest;
    return await inTurns(compileSnapshotInSteps(document, catalog, tenant ?? served?.tenant ?? null));
  } catch (error) {
    if (error instanceof PolicyProblems)
      throw refused(error.problems.map(({ path, message }) => `${path.join('.')}: ${message}`));
    if (error instanceof ManifestProblems)
      throw refused(
        error.diagnostics.map(
          ({ path, range, message }) => `${path || `line ${range.start.line}`}: ${message}`,
        ),
      );
    throw error;
  }
}

function refused(problems: readonly string[]): unknown {
  const more = problems.length > MOST_PROBLEMS ? [`and ${problems.length - MOST_PROBLEMS} more`] : [];
  const reason = `the policy has problems: ${[...problems.slice(0, MOST_PROBLEMS), ...more].join('; ')}`;
  return queryError('shadowRefused', { reason, hint: 'correct the policy' });
}

interface RunningShadow {
  readonly policy: ShadowPolicy;
  readonly start: ShadowStart;
  readonly version: string;
  readonly expiry: NodeJS.Timeout;
}

/** Holds the shadow policy of a process and the report of the last comparison. Both are lost at a restart. */
export class Shadows implements ShadowHolder {
  readonly #parts: () => CompilingParts & { model(): Model & { readonly manifest: Manifest } };
  #running: RunningShadow | null = null;
  #last: ShadowReport | null = null;

  /** @param parts returns the parts of the service; called only after the service is open */
  constructor(parts: () => CompilingParts & { model(): Model }) {
    this.#parts = parts;
  }

  /** The running shadow policy; null if there is none. Read for each question. */
  running: ShadowPolicy | null = null;

  /**
   * Executes a command. Returns the report; null if there has been no comparison. @throws QueryError E0534 from `start`
   */
  async obey(command: ShadowCommand): Promise<ShadowReport | null> {
    switch (command.do) {
      case 'start':
        return this.#start(command.start);
      case 'stop':
        return this.#stop('stopped');
      case 'report':
        return this.#report('running', null);
    }
  }

  async close(): Promise<void> {
    await this.#stop('stopped');
  }

  async #start(start: ShadowStart): Promise<ShadowReport | null> {
    const parts = this.#parts();
    const model = parts.model();
    const snapshot = await shadowSnapshot(start.policy, model);
    if (this.#running !== null) throw alreadyRunning(this.#running.start);
    const policy = new ShadowPolicy(this.#parts, snapshot, model.manifest);
    const left = Math.max(0, Date.parse(start.until) - Date.now());
    const expiry = setTimeout(() => void this.#stop('expired'), left).unref();
    this.#running = { policy, start, version: snapshot.version, expiry };
    this.#last = null;
    this.running = policy;
    return this.#report('running', null);
  }

  async #stop(state: 'stopped' | 'expired'): Promise<ShadowReport | null> {
    const ended = this.#running;
    if (ended === null) return this.#last;
    this.#last = this.#report(state, new Date().toISOString());
    this.#running = null;
    this.running = null;
    clearTimeout(ended.expiry);
    await ended.policy.close();
    return this.#last;
  }

  #report(state: ShadowReport['state'], ended_at: string | null): ShadowReport | null {
    if (this.#running === null) return this.#last;
    const { policy, version, start } = this.#running;
    const { by, started_at, until } = start;
    return { policy: version, by, started_at, until, state, ended_at, ...policy.figures() };
  }
}

/** Returns the error for starting a shadow policy while another one is running. */
export function alreadyRunning({ started_at }: Pick<ShadowStart, 'started_at'>): unknown {
  const reason = `another one has been running since ${started_at}`;
  return queryError('shadowRefused', { reason, hint: 'read its report, or stop it first' });
}

/** Sums the reports of the current comparison, or the last one, over all processes; null if no process has a report. */
export function sumReports(all: readonly (ShadowReport | null)[]): ShadowReport | null {
  const reports = all.filter((one) => one !== null);
  const shown = reports.find(({ state }) => state === 'running') ?? reports[0];
  if (shown === undefined) return null;
  return { ...shown, ...sumFigures(reports.filter(({ started_at }) => started_at === shown.started_at)) };
}
