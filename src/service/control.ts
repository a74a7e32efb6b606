import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import {
  type ActivationBase,
  activePolicy,
  type ControlDatabase,
  ControlFault,
  controlVersions,
  databaseTime,
  isSharedKey,
  lastRevocation,
  openControl,
  publishedAfter,
  publishedId,
  requireSchema,
  revokedAfter,
  shareClockOffset,
  shareRevocation,
  shareVersions,
} from '../base/control/index.js';
import { writeWhole } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import { parseSource, readManifestText } from '../model/manifest/index.js';
import { PublishedDamaged, VersionStore, writeVersions } from '../model/versions/versions.js';
import { fingerprintOf, type TenantKeys } from './keys.js';
import { PolicyUnknown, type ReadFileText } from './model.js';
import { RevocationFiles } from './revocations.js';
import type { ControlSettings } from './settings/groups.js';
import type { Settings } from './settings.js';

/** Maximum tolerated difference between the clocks, in ms. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000;
/** Maximum duration in ms of the query for the database's time; slower answers are too inaccurate to use. */
const MAX_QUERY_MS = 5_000;
const MIN_INTERVAL_MS = 2_000;
/** SQLSTATE classes of refusals: missing privilege, table or schema, or a read-only server. */
const REFUSAL_STATES = /^(42|25|3F)/;

/**
 * Compares this machine's clock with the control database's. A wrong clock makes tokens end too early or too late.
 *
 * A difference does not show which clock is wrong, so the other gateways decide: this machine's clock is wrong if
 * another gateway's agrees with the database's. If none does, the database's may be wrong, and all keep serving.
 */
export class ClockComparison {
  readonly #database: ControlDatabase;
  readonly #tenant: string;
  readonly #gateway: string;
  readonly #log: ServiceLog;
  #offsetMs: number | null = null;
  #isWrong = false;
  #hasWarned = false;
  #wasRefused = false;
  #comparedAt = Number.NEGATIVE_INFINITY;

  /** @param gateway a unique name of this gateway */
  constructor(database: ControlDatabase, tenant: string, gateway: string, log: ServiceLog) {
    this.#database = database;
    this.#tenant = tenant;
    this.#gateway = gateway;
    this.#log = log;
  }

  /** Milliseconds by which this machine's clock is ahead of the database's; null before the first comparison. */
  get offsetMs(): number | null {
    return this.#offsetMs;
  }

  get isWrong(): boolean {
    return this.#isWrong;
  }

  /** Compares the clocks, unless that was done in the last 2 s. @throws ControlFault if the database does not answer */
  async compareWhenDue(): Promise<void> {
    const now = performance.now();
    if (now - this.#comparedAt < MIN_INTERVAL_MS) return;
    this.#comparedAt = now;
    await this.compare();
  }

  /** Compares the clocks now. If the database refuses, nothing changes. @throws ControlFault if it does not answer */
  async compare(): Promise<void> {
    try {
      const offsetMs = await this.#measure();
      if (offsetMs === null) return;
      const offset = { tenant: this.#tenant, gateway: this.#gateway, offsetMs };
      const agreeingGateways = await shareClockOffset(this.#database, offset, MAX_CLOCK_DIFFERENCE_MS);
      this.#offsetMs = offsetMs;
      this.#update(Math.abs(offsetMs) > MAX_CLOCK_DIFFERENCE_MS, agreeingGateways);
    } catch (error) {
      if (!(error instanceof ControlFault) || !REFUSAL_STATES.test(error.code ?? '')) throw error;
      if (!this.#wasRefused) this.#log.warn('clocks are not compared', { cause: error.message });
      this.#wasRefused = true;
    }
  }

  async #measure(): Promise<number | null> {
    const startedAt = performance.now();
    const databaseMs = await databaseTime(this.#database);
    const durationMs = performance.now() - startedAt;
    return durationMs > MAX_QUERY_MS ? null : Date.now() - durationMs / 2 - databaseMs;
  }

  #update(isOffsetLarge: boolean, agreeingGateways: number): void {
    const isWrong = isOffsetLarge && agreeingGateways > 0;
    const seconds = Math.round((this.#offsetMs ?? 0) / 1_000);
    if (isWrong && !this.#isWrong)
      this.#log.error(
        'the clock of this machine is wrong: /ready is 503 until it is right, since tokens end too early or too late',
        { seconds_ahead: seconds, agreeing_gateways: agreeingGateways },
      );
    else if (isOffsetLarge && !isWrong && !this.#hasWarned)
      this.#log.warn(
        'this machine and the control database have different times, and no other gateway says which one is right',
        { seconds_ahead: seconds },
      );
    else if (!isOffsetLarge && (this.#isWrong || this.#hasWarned)) this.#log.warn('the clocks agree again');
    this.#hasWarned = isOffsetLarge && !isWrong;
    this.#isWrong = isWrong;
  }
}

const NO_ACTIVE_POLICY = 'no policy is active: osl policy push --activate';

/** Timeout of a statement in ms; a poll runs one or two. */
const STATEMENT_MS = 2_000;

/** The state of the control database as of the last poll. */
interface ControlState extends ActivationBase {
  readonly revoked: number;
}

/**
 * A gateway's view of the control database: the active policy, published versions, revocations, and the time of the
 * last response.
 */
export class Control {
  readonly tenant: string;
  readonly settings: ControlSettings;
  readonly clock: ClockComparison;
  readonly #database: ControlDatabase;
  readonly #policyFile: string;
  readonly #dir: string;
  readonly #revocationFiles: RevocationFiles;
  #policyText: string | null = null;
  #unavailableReason = NO_ACTIVE_POLICY;
  #lastState: ControlState = { activation: 0, published: 0, revoked: 0 };
  /** Start of the last successful poll, on the clock of `performance.now()`. */
  #answeredAt = performance.now();
  #hasAnswered = false;
  /** True if the file copy of the policy, which tools read, has the text of the last poll. */
  #isCopied = false;
  /** Checks that must succeed before a poll counts, see `join`; null if there are none left. */
  #pendingJoin: (() => Promise<void>) | null = null;

  private constructor(settings: Settings, control: ControlSettings, tenant: string, log: ServiceLog) {
    this.tenant = tenant;
    this.settings = control;
    this.#policyFile = settings.policyFile;
    this.#dir = join(settings.dataDir, 'published');
    this.#revocationFiles = new RevocationFiles(settings.dataDir);
    this.#database = openControl(control.place, { statementMs: STATEMENT_MS });
    this.clock = new ClockComparison(
      this.#database,
      tenant,
      `${gatewayName()}:${resolve(settings.dataDir)}`,
      log,
    );
  }

  /**
   * Returns null if no control database is configured. If it is unreachable or has no schema, that is logged: the
   * gateway starts without a policy and continues once the problem is fixed.
   *
   * @throws StartProblem, ManifestProblems
   */
  static async open(settings: Settings, log: ServiceLog): Promise<Control | null> {
    if (settings.control === null) return null;
    const control = new Control(settings, settings.control, await readTenant(settings.manifestFile), log);
    try {
      await control.poll();
    } catch (error) {
      if (!(error instanceof ControlFault)) {
        await control.close();
        throw error;
      }
      control.#unavailableReason = error.message;
      log.error('the control database is not heard: every request is refused (E2001) until it is', {
        cause: error.message,
      });
    }
    return control;
  }

  get lastState(): ControlState {
    return this.#lastState;
  }

  /** True once a poll has succeeded. Until then, nothing may be served. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** True if the database has not answered for longer than configured. */
  get isSilent(): boolean {
    return performance.now() - this.#answeredAt > this.settings.silenceMs;
  }

  get silenceText(): string {
    return `the control database has not answered for ${this.settings.silenceMs / 1_000} s`;
  }

  /** Polls the database. @throws ControlFault, ControlConflict; what was read before the failure is kept */
  async poll(): Promise<ControlState> {
    const startedAt = performance.now();
    if (!this.#hasAnswered) await requireSchema(this.#database);
    await this.#pendingJoin?.();
    this.#pendingJoin = null;
    await this.#shareRevocations();
    const revoked = await this.#pullRevocations();
    const state = { ...(await controlVersions(this.#database, this.tenant)), revoked };
    const isNewActivation = state.activation !== this.#lastState.activation || this.#policyText === null;
    if (isNewActivation && state.activation > 0 && this.settings.policySource === 'control') {
      const active = await activePolicy(this.#database, this.tenant);
      if (active !== null) {
        this.#policyText = active.text;
        this.#isCopied = false;
        this.#lastState = { ...state, activation: active.activation };
      }
    } else this.#lastState = state;
    await this.#copyPolicy();
    this.#answeredAt = startedAt;
    this.#hasAnswered = true;
    this.#unavailableReason = NO_ACTIVE_POLICY;
    await this.clock.compareWhenDue();
    return this.#lastState;
  }

  /** Writes the policy to a file, which only tools read. May fail before the first start has created its folder. */
  async #copyPolicy(): Promise<void> {
    if (this.#isCopied || this.#policyText === null) return;
    this.#isCopied = await writeWhole(this.#policyFile, Buffer.from(this.#policyText)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Reads a file. If the policy comes from the control database, the policy file's text is the one last seen there.
   *
   * @throws PolicyUnknown for the policy file, if the control database does not answer or has no active policy, and
   * the errors of `readManifestText`
   */
  readonly read: ReadFileText = async (file) => {
    if (file !== this.#policyFile) return readManifestText(file);
    if (!this.#hasAnswered) throw new PolicyUnknown(this.#policyFile, this.#unavailableReason);
    if (this.isSilent) throw new PolicyUnknown(this.#policyFile, this.silenceText);
    if (this.settings.policySource === 'file') return readManifestText(file);
    if (this.#policyText === null) throw new PolicyUnknown(this.#policyFile, this.#unavailableReason);
    return this.#policyText;
  };

  /**
   * Checks that this gateway has the same keys as the others, and synchronizes published versions: now or, if the
   * database does not answer, with the next poll, before anything is served.
   *
   * @throws StartProblem, PublishedDamaged; ControlFault, after which the next poll tries again
   */
  async join(keys: TenantKeys): Promise<void> {
    const work = async (): Promise<void> => {
      await this.#requireKeys(keys);
      await this.#synchronizePublished();
    };
    if (!this.#hasAnswered) this.#pendingJoin = work;
    else
      await work().catch((error: unknown) => {
        if (error instanceof ControlFault) {
          this.#hasAnswered = false;
          this.#pendingJoin = work;
        }
        throw error;
      });
  }

  /**
   * Synchronizes published versions in both directions: those of a joining gateway are published for all.
   *
   * @throws StartProblem if the histories differ; ControlFault, PublishedDamaged
   */
  async #synchronizePublished(): Promise<void> {
    const versions = await VersionStore.open(this.#dir);
    const { published } = await controlVersions(this.#database, this.tenant);
    const commonLength = Math.min(published, versions.history.length);
    const localId = versions.history[commonLength - 1]?.id ?? null;
    const sharedId = commonLength === 0 ? null : await publishedId(this.#database, this.tenant, commonLength);
    if (localId !== sharedId)
      throw new StartProblem(
        `${this.#dir} holds other published versions than the control database (version ${commonLength}): move the directory away to serve what the other gateways do`,
      );
    if (versions.history.length > published) {
      const unsharedVersions = [];
      for (let number = published + 1; number <= versions.history.length; number++)
        unsharedVersions.push(await versions.sealed(number));
      await shareVersions(this.#database, this.tenant, unsharedVersions, gatewayName(), null);
    }
    await this.pull();
  }

  /**
   * Requires all gateways to have the same keys; otherwise, masked hashes would differ, and each gateway would refuse
   * the tokens of others.
   *
   * @throws StartProblem, ControlFault
   */
  async #requireKeys(keys: TenantKeys): Promise<void> {
    for (const kind of ['masking', 'signing'] as const) {
      const fingerprint = fingerprintOf(kind, keys[kind]);
      if (await isSharedKey(this.#database, this.tenant, kind, fingerprint, gatewayName())) continue;
      throw new StartProblem(
        `the ${kind} key of this gateway (${fingerprint}) is not that of the others: give all of them the same OSL_KEYS_DIR. ` +
          `To change it for all, delete from osl_control.gateway_key as its owner first`,
      );
    }
  }

  /** Stores versions that other gateways have published. @throws ControlFault, PublishedDamaged */
  async pull(): Promise<void> {
    const versions = await VersionStore.open(this.#dir);
    const newer = await publishedAfter(this.#database, this.tenant, versions.history.length);
    if (newer.length === 0) return;
    if (newer[0]?.parent !== (versions.head?.id ?? null))
      throw new PublishedDamaged(`${this.#dir} holds other published versions than the control database`);
    await writeVersions(this.#dir, newer);
  }

  /** Stores revocations made by other gateways and returns the number of the newest one. */
  async #pullRevocations(): Promise<number> {
    const previous = this.#lastState.revoked;
    const newest = await lastRevocation(this.#database, this.tenant);
    if (newest === previous) return newest;
    // A lower number means that the database was restored from a backup: read all revocations again.
    const lastKnown = newest > previous ? previous : 0;
    for (const revocation of await revokedAfter(this.#database, this.tenant, lastKnown, Date.now()))
      await this.#revocationFiles.write(revocation, false);
    this.#lastState = { ...this.#lastState, revoked: newest };
    return newest;
  }

  /** Shares revocations made while the control database was unavailable. */
  async #shareRevocations(): Promise<void> {
    for (const revocation of await this.#revocationFiles.unshared()) {
      await shareRevocation(this.#database, this.tenant, revocation, gatewayName());
      await this.#revocationFiles.markShared(revocation);
    }
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

/** Returns the host name, which names this gateway among the others. */
export function gatewayName(): string {
  return hostname();
}

async function readTenant(manifestFile: string): Promise<string> {
  const { value } = parseSource(await readManifestText(manifestFile), manifestFile);
  const tenant = typeof value === 'object' && value !== null && 'tenant' in value ? value.tenant : null;
  if (typeof tenant === 'string') return tenant;
  throw new StartProblem(
    `${manifestFile} names no tenant: gateways that share a database need \`tenant:\` in it`,
  );
}
