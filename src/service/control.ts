import { hostname } from 'node:os';
import { join } from 'node:path';
import {
  type ActivationBase,
  activePolicy,
  type ControlDatabase,
  ControlFault,
  isSharedKey,
  lastRevocation,
  openControl,
  publishedAfter,
  publishedId,
  requireSchema,
  revokedAfter,
  shareRevocation,
  shareVersions,
  standing,
} from '../base/control/index.js';
import { writeWhole } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';
import { StartProblem } from '../base/start-problem.js';
import { parseSource, readManifestText } from '../model/manifest/index.js';
import { PublishedDamaged, VersionStore, writeVersions } from '../model/versions/index.js';
import { fingerprintOf, type TenantKeys } from './keys.js';
import { PolicyUnknown, type ReadFileText } from './model.js';
import { RevocationFiles } from './revocations.js';
import type { ControlSettings } from './settings/control.js';
import type { Settings } from './settings.js';

const NONE_ACTIVE = 'no policy is active: osl policy push --activate';

/** A look takes so long at most, ms: connecting, and a statement or two. */
const STATEMENT_MS = 2_000;

/** What is to serve, and what was revoked. */
export interface ControlState extends ActivationBase {
  /** The number of the last revocation; 0 for none. */
  readonly revoked: number;
}

/** What a gateway knows of the control database: what is to serve, and when it last heard. One for each gateway. */
export class Control {
  readonly tenant: string;
  readonly settings: ControlSettings;
  readonly #database: ControlDatabase;
  readonly #policyFile: string;
  readonly #dir: string;
  readonly #revoked: RevocationFiles;
  #text: string | null = null;
  #why = NONE_ACTIVE;
  #seen: ControlState = { activation: 0, published: 0, revoked: 0 };
  /** When the last look that was answered began; ms of the process' own clock. */
  #heardAt = performance.now();
  #heard = false;
  /** What must be right before anything that is heard counts: see `join`. */
  #toJoin: (() => Promise<void>) | null = null;

  private constructor(settings: Settings, control: ControlSettings, tenant: string) {
    this.tenant = tenant;
    this.settings = control;
    this.#policyFile = settings.policyFile;
    this.#dir = join(settings.dataDir, 'published');
    this.#revoked = new RevocationFiles(settings.dataDir);
    this.#database = openControl(control.place, { statementMs: STATEMENT_MS });
  }

  /**
   * Null where the settings name no control database. One that does not answer, lets nobody in or has no schema is told
   * in the log: the gateway begins without a policy then, and goes on once that is mended.
   *
   * @throws StartProblem, ManifestProblems
   */
  static async open(settings: Settings, log: ServiceLog): Promise<Control | null> {
    if (settings.control === null) return null;
    const control = new Control(settings, settings.control, await tenantIn(settings.manifestFile));
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

  /** What is to serve, as it was last seen. */
  get seen(): ControlState {
    return this.#seen;
  }

  /** True once a look was answered: before that nothing may serve, for it may have been taken away. */
  get heard(): boolean {
    return this.#heard;
  }

  /** Nothing was heard for longer than the settings allow. */
  get silent(): boolean {
    return performance.now() - this.#heardAt > this.settings.silenceMs;
  }

  get silence(): string {
    return `the control database has not answered for ${this.settings.silenceMs / 1_000} s`;
  }

  /** Looks what is to serve. @throws ControlFault, ControlConflict; then what was seen before still holds */
  async look(): Promise<ControlState> {
    const began = performance.now();
    if (!this.#heard) await requireSchema(this.#database);
    await this.#toJoin?.();
    this.#toJoin = null;
    await this.#shareRevoked();
    const revoked = await this.#takeRevoked();
    const seen = { ...(await standing(this.#database, this.tenant)), revoked };
    const another = seen.activation !== this.#seen.activation || this.#text === null;
    if (another && seen.activation > 0 && this.settings.policySource === 'control') {
      const active = await activePolicy(this.#database, this.tenant);
      if (active !== null) {
        this.#text = active.text;
        await writeWhole(this.#policyFile, Buffer.from(active.text)).catch(() => undefined); // a copy for tools
        this.#seen = { ...seen, activation: active.activation };
      }
    } else this.#seen = seen;
    this.#heardAt = began;
    this.#heard = true;
    this.#why = NONE_ACTIVE;
    return this.#seen;
  }

  /** Files by their names, and of the policy, where it stands in the control database, the text that was last seen. */
  readonly read: ReadFileText = async (file) => {
    if (file !== this.#policyFile) return readManifestText(file);
    if (!this.#heard) throw new PolicyUnknown(this.#policyFile, this.#why);
    if (this.silent) throw new PolicyUnknown(this.#policyFile, this.silence);
    if (this.settings.policySource === 'file') return readManifestText(file);
    if (this.#text === null) throw new PolicyUnknown(this.#policyFile, this.#why);
    return this.#text;
  };

  /**
   * Sees to it that this gateway has the keys of the others and what they have published: now, or, where the database does
   * not answer, with the next look that is answered, before which nothing that is heard counts.
   *
   * @throws StartProblem, PublishedDamaged; ControlFault, after which it is tried again
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
   * Brings the data directory to what all gateways have published. What it has beyond them, as a gateway that joins
   * brings it, is published for all.
   *
   * @throws StartProblem where neither goes on from the other; ControlFault, PublishedDamaged
   */
  async #joinPublished(): Promise<void> {
    const versions = await VersionStore.open(this.#dir);
    const { published } = await standing(this.#database, this.tenant);
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
   * Sees to it that this gateway has the keys of the others: with another masking key one person's hash would differ from
   * gateway to gateway, with another signing key a token of one would be refused by the next.
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

  /** Writes to the data directory what others have published since. @throws ControlFault, PublishedDamaged */
  async pull(): Promise<void> {
    const versions = await VersionStore.open(this.#dir);
    const newer = await publishedAfter(this.#database, this.tenant, versions.history.length);
    if (newer.length === 0) return;
    if (newer[0]?.parent !== (versions.head?.id ?? null))
      throw new PublishedDamaged(`${this.#dir} holds other published versions than the control database`);
    await writeVersions(this.#dir, newer);
  }

  /** Brings the data directory what other gateways have revoked. Gives the number of the last. */
  async #takeRevoked(): Promise<number> {
    const before = this.#seen.revoked;
    const last = await lastRevocation(this.#database, this.tenant);
    if (last === before) return last;
    // A database that was restored counts anew.
    const after = last > before ? before : 0;
    for (const revocation of await revokedAfter(this.#database, this.tenant, after, Date.now()))
      await this.#revoked.write(revocation, false);
    this.#seen = { ...this.#seen, revoked: last };
    return last;
  }

  /** Tells other gateways what was revoked here while the control database did not answer. */
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

/** By what name this gateway is known among the others. */
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
