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
const TOLERANCE_MS = 60_000;
/** Maximum duration in ms of the query for the database's time; slower answers are too inaccurate to use. */
const SLOW_MS = 5_000;
const COMPARE_MS = 2_000;
/** SQLSTATE classes of refusals: missing privilege, table or schema, or a read-only server. */
const REFUSALS = /^(42|25|3F)/;

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
  #wrong = false;
  #warned = false;
  #refused = false;
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

  get wrong(): boolean {
    return this.#wrong;
  }

  /** Compares the clocks, unless that was done in the last 2 s. @throws ControlFault if the database does not answer */
  async compareWhenDue(): Promise<void> {
    const now = performance.now();
    if (now - this.#comparedAt < COMPARE_MS) return;
    this.#comparedAt = now;
    await this.compare();
  }

  /** Compares the clocks now. If the database refuses, nothing changes. @throws ControlFault if it does not answer */
  async compare(): Promise<void> {
    try {
      const offsetMs = await this.#measure();
      if (offsetMs === null) return;
      const offset = { tenant: this.#tenant, gateway: this.#gateway, offsetMs };
      const agreeing = await shareClockOffset(this.#database, offset, TOLERANCE_MS);
      this.#offsetMs = offsetMs;
      this.#take(Math.abs(offsetMs) > TOLERANCE_MS, agreeing);
    } catch (error) {
      if (!(error instanceof ControlFault) || !REFUSALS.test(error.code ?? '')) throw error;
      if (!this.#refused) this.#log.warn('clocks are not compared', { cause: error.message });
      this.#refused = true;
    }
  }

  async #measure(): Promise<number | null> {
    const sent = performance.now();
    const databaseMs = await databaseTime(this.#database);
    const took = performance.now() - sent;
    return took > SLOW_MS ? null : Date.now() - took / 2 - databaseMs;
  }

  #take(far: boolean, agreeing: number): void {
    const wrong = far && agreeing > 0;
    const seconds = Math.round((this.#offsetMs ?? 0) / 1_000);
    if (wrong && !this.#wrong)
      this.#log.error(
        'the clock of this machine is wrong: /ready is 503 until it is right, since tokens end too early or too late',
        { seconds_ahead: seconds, agreeing_gateways: agreeing },
      );
    else if (far && !wrong && !this.#warned)
      this.#log.warn(
        'this machine and the control database have different times, and no other gateway says which one is right',
        { seconds_ahead: seconds },
      );
    else if (!far && (this.#wrong || this.#warned)) this.#log.warn('the clocks agree again');
    this.#warned = far && !wrong;
    this.#wrong = wrong;
  }
}

const NONE_ACTIVE = 'no policy is active: osl policy push --activate';

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
  readonly #revoked: RevocationFiles;
  #text: string | null = null;
  #why = NONE_ACTIVE;
  #seen: ControlState = { activation: 0, published: 0, revoked: 0 };
  /** Start of the last successful poll, on the clock of `performance.now()`. */
  #heardAt = performance.now();
  #heard = false;
  /** True if the file copy of the policy, which tools read, has the text of the last poll. */
  #isCopied = false;
  /** Checks that must succeed before a poll counts, see `join`; null if there are none left. */
  #toJoin: (() => Promise<void>) | null = null;

  private constructor(settings: Settings, control: ControlSettings, tenant: string, log: ServiceLog) {
    this.tenant = tenant;
    this.settings = control;
    this.#policyFile = settings.policyFile;
    this.#dir = join(settings.dataDir, 'published');
    this.#revoked = new RevocationFiles(settings.dataDir);
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
    const control = new Control(settings, settings.control, await tenantIn(settings.manifestFile), log);
    try {
      await control.look();
    } catch (error) {
      if (!(error instanceof ControlFault)) {
        await control.close();
        throw error;
      }
      control.#why = error.message;
      log.error('the control database is not heard: every request is refused (E2001) until it is', {
        cause: error.message,
      });
    }
    return control;
  }

  get seen(): ControlState {
    return this.#seen;
  }

  /** True once a poll has succeeded. Until then, nothing may be served. */
  get heard(): boolean {
    return this.#heard;
  }

  /** True if the database has not answered for longer than configured. */
  get silent(): boolean {
    return performance.now() - this.#heardAt > this.settings.silenceMs;
  }

  get silence(): string {
    return `the control database has not answered for ${this.settings.silenceMs / 1_000} s`;
  }

  /** Polls the database. @throws ControlFault, ControlConflict; what was read before the failure is kept */
  async look(): Promise<ControlState> {
    const began = performance.now();
    if (!this.#heard) await requireSchema(this.#database);
    await this.#toJoin?.();
    this.#toJoin = null;
    await this.#shareRevoked();
    const revoked = await this.#takeRevoked();
    const seen = { ...(await controlVersions(this.#database, this.tenant)), revoked };
    const another = seen.activation !== this.#seen.activation || this.#text === null;
    if (another && seen.activation > 0 && this.settings.policySource === 'control') {
      const active = await activePolicy(this.#database, this.tenant);
      if (active !== null) {
        this.#text = active.text;
        this.#isCopied = false;
        this.#seen = { ...seen, activation: active.activation };
      }
    } else this.#seen = seen;
    await this.#copyPolicy();
    this.#heardAt = began;
    this.#heard = true;
    this.#why = NONE_ACTIVE;
    await this.clock.compareWhenDue();
    return this.#seen;
  }

  /** Writes the policy to a file, which only tools read. May fail before the first start has created its folder. */
  async #copyPolicy(): Promise<void> {
    if (this.#isCopied || this.#text === null) return;
    this.#isCopied = await writeWhole(this.#policyFile, Buffer.from(this.#text)).then(
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
    if (!this.#heard) throw new PolicyUnknown(this.#policyFile, this.#why);
    if (this.silent) throw new PolicyUnknown(this.#policyFile, this.silence);
    if (this.settings.policySource === 'file') return readManifestText(file);
    if (this.#text === null) throw new PolicyUnknown(this.#policyFile, this.#why);
    return this.#text;
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
      await this.#joinPublished();
    };
    if (!this.#heard) this.#toJoin = work;
    else
      await work().catch((error: unknown) => {
        if (error instanceof ControlFault) {
          this.#heard = false;
          this.#toJoin = work;
        }
        throw error;
      });
  }

  /**
   * Synchronizes published versions in both directions: those of a joining gateway are published for all.
   *
   * @throws StartProblem if the histories differ; ControlFault, PublishedDamaged
   */
  async #joinPublished(): Promise<void> {
    const versions = await VersionStore.open(this.#dir);
    const { published } = await controlVersions(this.#database, this.tenant);
    const common = Math.min(published, versions.history.length);
    const own = versions.history[common - 1]?.id ?? null;
    const shared = common === 0 ? null : await publishedId(this.#database, this.tenant, common);
    if (own !== shared)
      throw new StartProblem(
        `${this.#dir} holds other published versions than the control database (version ${common}): move the directory away to serve what the other gateways do`,
      );
    if (versions.history.length > published) {
      const more = [];
      for (let number = published + 1; number <= versions.history.length; number++)
        more.push(await versions.sealed(number));
      await shareVersions(this.#database, this.tenant, more, gatewayName(), null);
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
  async #takeRevoked(): Promise<number> {
    const before = this.#seen.revoked;
    const last = await lastRevocation(this.#database, this.tenant);
    if (last === before) return last;
    // A lower number means that the database was restored from a backup: read all revocations again.
    const after = last > before ? before : 0;
    for (const revocation of await revokedAfter(this.#database, this.tenant, after, Date.now()))
      await this.#revoked.write(revocation, false);
    this.#seen = { ...this.#seen, revoked: last };
    return last;
  }

  /** Shares revocations made while the control database was unavailable. */
  async #shareRevoked(): Promise<void> {
    for (const revocation of await this.#revoked.unshared()) {
      await shareRevocation(this.#database, this.tenant, revocation, gatewayName());
      await this.#revoked.shared(revocation);
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

async function tenantIn(manifestFile: string): Promise<string> {
  const { value } = parseSource(await readManifestText(manifestFile), manifestFile);
  const tenant = typeof value === 'object' && value !== null && 'tenant' in value ? value.tenant : null;
  if (typeof tenant === 'string') return tenant;
  throw new StartProblem(
    `${manifestFile} names no tenant: gateways that share a database need \`tenant:\` in it`,
  );
}
