import { join } from 'node:path';
import { queryError, ready } from 'osl-compiler';
import { createLeasedLimiter, DEFAULT_LIMITS, type RateLimits, type Revocation } from '../../policy/index.js';
import { TableAttributes } from '../ask/data/table-attributes.js';
import type { ApprovalRegistry } from '../ask/request/approval-requests.js';
import type { RequestControls } from '../ask/request/parts.js';
import { SealedValue } from '../ask/request/sealed.js';
import { Shadows } from '../ask/shadow/shadows.js';
import { startAsk } from '../ask/start.js';
import type { Owner, OwnerNotice } from '../ask/why/request-access.js';
import { ControlConflict, openControl, shareRevocation, shareVersions } from '../base/control/index.js';
import type { ServiceLog } from '../base/log.js';
import { version } from '../base/package-root.js';
import { messageOf } from '../base/thrown.js';
import { RollupMonitor } from '../content/rollups/rollups.js';
import type { OpenedEngine } from '../engine/index.js';
import { createDrafting } from '../model/drafting/drafting.js';
import type { ServedModel } from '../model/served-model.js';
import { createPublishing, type PublicationStore } from '../model/versions/versions.js';
import { controlApprovals, fileApprovals, SharedApprovals } from './approvals.js';
import { openAudit } from './audit.js';
import { AuditReader } from './auditing/reader.js';
import { openBreakGlass } from './break-glass.js';
import { Control, gatewayName } from './control.js';
import { openDashboards } from './dashboards.js';
import { takeOver } from './data-directory.js';
import { databaseEpochs } from './data-epochs.js';
import { startEngines } from './engines.js';
import { joinGateways } from './follow-control.js';
import { contentPlane } from './indexing/content.js';
import { type TenantKeys, tenantKeys } from './keys.js';
import { openRedisCounts } from './limits/redis.js';
import { type CountStore, openPostgresCounts, SharedCounts } from './limits/shared-counts.js';
import { type SendAttempt, send } from './lineage/delivery/send.js';
import { startLineage } from './lineage.js';
import { loadStartupModel, type PolicyFault, publishedDir } from './model.js';
import { openObserving } from './otlp/observing.js';
import { openOverlaps } from './overlaps.js';
import { type ProcessFiles, singleProcessFiles, withControl } from './process-files.js';
import { type ModelChanges, startChanges } from './reload/changes.js';
import { recordEvent } from './reload/reload.js';
import { RevocationFiles, Revocations } from './revocations.js';
import { rightsSigners } from './row-security.js';
import type { Service } from './service.js';
import { CurrentModel } from './serving.js';
import type { LimitsPlace, OwnerSettings } from './settings/groups.js';
import type { Settings } from './settings.js';
import { startTrust } from './token-trust.js';

/** Statement timeout in ms. Publishing is exclusive, so it may take no longer than OSL_CONTROL_SILENCE_SECONDS. */
const STATEMENT_MS = 2_000;

interface GatewaySharing {
  readonly publish: PublicationStore['share'];
  /** Shares a revocation with other gateways; false if the control database failed. Null without a control database. */
  readonly revoke: ((revocation: Revocation) => Promise<boolean>) | null;
  /** The approvals of all gateways; null without a control database. */
  readonly approvals: ApprovalRegistry | null;
  close(): Promise<void>;
}

function openSharing(
  { control }: Settings,
  processFiles: ProcessFiles,
  tenant: string,
  log: ServiceLog,
): GatewaySharing {
  if (control === null)
    return { publish: async () => 'shared', revoke: null, approvals: null, close: async () => undefined };
  const database = openControl(control.place, { connections: 1, statementMs: STATEMENT_MS });
  const publish: PublicationStore['share'] = async ({ version, bytes }) => {
    const { number, id, parent } = version;
    try {
      await shareVersions(
        database,
        tenant,
        [{ number, id, parent, bytes }],
        gatewayName(),
        processFiles.activation(),
      );
      return 'shared';
    } catch (error) {
      if (error instanceof ControlConflict) return 'outdated';
      log.error('nothing was published: the control database did not take it', { cause: messageOf(error) });
      return 'unavailable';
    }
  };
  const revoke = async (revocation: Revocation): Promise<boolean> => {
    try {
      await shareRevocation(database, tenant, revocation, gatewayName());
      return true;
    } catch (error) {
      log.error('other gateways do not know yet what was revoked', { cause: messageOf(error) });
      return false;
    }
  };
  const approvals = controlApprovals(database, tenant, gatewayName());
  return { publish, revoke, approvals, close: () => database.close() };
}

/**
 * Returns `processFiles` with a limiter that counts in a store shared by all gateways, if one is configured. Until the
 * store has answered once, the number of counting processes is unknown, so requests are refused (E5038).
 *
 * @throws StartProblem if the store cannot be used
 */
async function withSharedLimits(
  processFiles: ProcessFiles,
  { load }: Settings,
  tenant: string,
  log: ServiceLog,
): Promise<{ readonly processFiles: ProcessFiles; hasAnswered(): boolean; close(): Promise<void> }> {
  if (load.limits === null) return { processFiles, hasAnswered: () => true, close: async () => undefined };
  const store = await opened(load.limits);
  const counts = await SharedCounts.join(store, { tenant, log });
  // Wrong passwords are counted separately for each server.
  const limiter = (limits: RateLimits) =>
    createLeasedLimiter(counts.share(processFiles.limiter(limits).guesses), limits);
  return {
    processFiles: Object.freeze({ ...processFiles, limiter }),
    hasAnswered: () => counts.hasAnswered,
    close: () => counts.close(),
  };
}

function opened(place: LimitsPlace): Promise<CountStore> {
  return place.kind === 'redis' ? openRedisCounts(place.url) : openPostgresCounts(place.at);
}

function needsApprovals({ snapshot }: ServedModel): boolean {
  const roles = [...(snapshot?.roles.values() ?? [])];
  return roles.some(({ conditions }) => [...conditions.values()].some(({ approval }) => approval !== null));
}

/**
 * URL at which requests for approval are decided: the console's page, or the REST route if no console is served.
 * Without a public URL of the server, only the path.
 */
function approvalUrl({ console, mcp }: Settings): string {
  return `${mcp.publicUrl ?? ''}${console === 'off' ? '/osl/approvals' : '/console/#/requests'}`;
}

const MAX_CONCURRENT_NOTICES = 32;

/**
 * Creates the owner's notifier: `tell` posts a notice as a signed webhook, with a single attempt, and fails if it was
 * not delivered, so that the caller can retry. `tell` is null without a webhook.
 */
function createOwner(endpoint: OwnerSettings, log: ServiceLog): Owner {
  if (endpoint === null) return Object.freeze({ tell: null });
  let running = 0;
  const tell = async ({ id, type, body }: OwnerNotice): Promise<void> => {
    if (running >= MAX_CONCURRENT_NOTICES) throw queryError('overloaded', { retryAfterSeconds: 1 });
    running += 1;
    try {
      const message = { id, body: JSON.stringify({ type, id, ...body }) };
      const attempt = await send(endpoint, message, { now: Date.now, agent: `osl-gateway/${version()}` });
      if (attempt.kind === 'delivered') return;
      log.error('the owner of the policy was not told', { id, type, reason: failureReason(attempt) });
      throw queryError('ownerUnreached', {});
    } finally {
      running -= 1;
    }
  };
  return Object.freeze({ tell });
}

function failureReason(attempt: Exclude<SendAttempt, { kind: 'delivered' }>): string {
  return attempt.kind === 'gone' ? 'status 410' : attempt.reason;
}

/** A service that is running but does not accept connections yet. */
export interface OpenService extends ModelChanges {
  readonly service: Service;
  /** The databases with their system engines, for tools only; surfaces get `service`. */
  readonly databases: ReadonlyMap<string, OpenedEngine>;
  /** The unsealed content of `service.means`, for tools only. */
  readonly means: RequestControls;
  record(action: string, detail: object): Promise<void>;
  readonly keys: TenantKeys;
  /** Reason why the service started without a policy; null if it has one. */
  readonly policyFault: PolicyFault | null;
  /** Resolves, with the reason, only when no request can be answered any more and the process should end. */
  readonly fatalFailure: Promise<string>;
  close(): Promise<void>;
}

/**
 * Assembles a service. If a part fails, the parts already opened are closed.
 *
 * @throws StartProblem, ManifestProblems, AuditDamaged, AuditLocked, and errors of engines whose messages are written
 * for the operator
 */
export async function openService(
  settings: Settings,
  log: ServiceLog,
  processFiles: ProcessFiles = singleProcessFiles(settings.dataDir),
): Promise<OpenService> {
  await ready();
  const control = processFiles.ownsDirectory ? await Control.open(settings, log) : null;
  const closing = new CloseStack();
  try {
    return await assemble(settings, log, withControl(processFiles, control), closing);
  } catch (error) {
    await closing.close();
    await control?.close();
    throw error;
  }
}

/** Closes parts in the reverse order of their opening. */
class CloseStack {
  readonly #parts: { close(): void | Promise<void> }[] = [];

  add<T extends { close(): void | Promise<void> }>(part: T): T {
    this.#parts.push(part);
    return part;
  }

  async close(): Promise<void> {
    for (const part of this.#parts.splice(0).reverse()) await part.close();
  }
}

async function assemble(
  settings: Settings,
  log: ServiceLog,
  baseFiles: ProcessFiles,
  closing: CloseStack,
): Promise<OpenService> {
  const { dataDir } = settings;
  const initialLoad = await loadStartupModel(settings, null, baseFiles.read);
  const { tenant } = initialLoad.model;
  const keys = tenantKeys(dataDir, settings.keysDir);

  const { audit, fatalFailure } = closing.add(await openAudit(settings, baseFiles.auditDir, tenant, log));
  // The log's lock protects the directory, so no other process publishes from here on.
  const endedExecutions = baseFiles.ownsDirectory ? await takeOver(settings, tenant, audit, log) : [];
  await joinGateways(baseFiles.control, keys, log);
  const { model: first, policyFault } = await loadStartupModel(settings, initialLoad, baseFiles.read);
  const shares = closing.add(openSharing(settings, baseFiles, tenant, log));
  const { processFiles, hasAnswered: countsAnswered } = closing.add(
    await withSharedLimits(baseFiles, settings, tenant, log),
  );

  const model = () => serving.model;
  const events = { audit, tenant, log, model };
  const onPolicyEnded = (): void =>
    void recordEvent(events, 'service.policy', { state: 'missing', why: 'the time to keep it is over' });
  const serving = closing.add(
    new CurrentModel(first, policyFault, settings.policyFailure, log, onPolicyEnded),
  );
  const limiter = processFiles.limiter(first.snapshot?.limits ?? DEFAULT_LIMITS);
  serving.onReplace(({ snapshot }) => {
    if (snapshot !== null) limiter.configure(snapshot.limits);
  });

  const { engines, runners, reads, memory, spool, databases, opened, defaultConnector } = closing.add(
    await startEngines(model, keys, settings, log),
  );
  // After a change of the model, queries on standbys require all data committed before the change.
  serving.onReplace(() => {
    for (const database of databases.values()) database.requireCurrent();
  });
  const dashboards = await openDashboards(settings.dashboardsDir);
  const trustKeys = { ...keys, exchangeKey: await processFiles.exchangeKey() };
  const trust = closing.add(await startTrust(settings, tenant, trustKeys, () => model().snapshot, log));
  const revocations = closing.add(
    await Revocations.open({
      files: new RevocationFiles(dataDir),
      log,
      removesExpired: processFiles.announcesDatasets,
      notifyProcesses: processFiles.notifyRevoked,
      lifetimeMs: trust.lifetimeMs,
      share: shares.revoke,
    }),
  );
  const { revoked } = revocations;
  const approvalRequests = closing.add(
    await new SharedApprovals(
      shares.approvals ?? fileApprovals(join(dataDir, 'approvals')),
      () => needsApprovals(model()),
      log,
    ).start(),
  );
  const { lineage, announce } = closing.add(
    await startLineage(settings, model, processFiles, audit, endedExecutions, log),
  );
  const { observing } = closing.add(openObserving(settings, log));
  const drafting = closing.add(createDrafting({ log }));
  const { epochs } = closing.add(databaseEpochs(() => model().manifest.connectors, reads, log));
  const { services: asking } = closing.add(
    await startAsk(
      {
        tenant,
        audit,
        log,
        revoked,
        approvals: approvalRequests.approvals,
        memory,
        maskSecret: keys.masking,
        marksDir: processFiles.marksDir,
        follow: (follower) => serving.onReplace(follower),
      },
      { ...settings, probeWindowMs: settings.audit.probeWindowMs },
    ),
  );
  const rollups = closing.add(
    await new RollupMonitor(
      () => model().manifest,
      reads.readRollupStates,
      (connector, error) =>
        log.warn('rollups cannot be looked at: none is used', { connector, cause: messageOf(error) }),
    ).start(),
  );
  const publishing = await createPublishing(publishedDir(settings), {
    sweeps: processFiles.ownsDirectory,
    alone: processFiles.exclusively,
    draftChanged: processFiles.notifyDraftChanged,
    share: shares.publish,
    serve: async (next) => {
      await processFiles.notifyPublished();
      serving.servePublished(next);
      await announce();
    },
  });

  let drained = false;
  const means: RequestControls = Object.freeze({
    recording: { tenant, audit, lineage, log, observing },
    limiter,
  });
  const reading = closing.add(new AuditReader(settings, audit, log));
  const tableAttributes: TableAttributes = new TableAttributes(() => service);
  const shadow: Shadows = closing.add(new Shadows(() => service));
  const overlaps = closing.add(
    openOverlaps(settings.control?.place ?? null, tenant, dataDir, processFiles.exclusively),
  );
  const service: Service = Object.freeze({
    tenant,
    tableAttributes,
    shadow,
    overlaps,
    log,
    model,
    ...asking,
    audit: Object.freeze({ stats: () => audit.stats() }),
    controls: new SealedValue(means),
    lineage,
    reading,
    observing,
    revocations,
    revoked,
    approvals: approvalRequests.approvals,
    approvalRequests,
    approvalUrl: approvalUrl(settings),
    verifier: trust.verifier,
    exchange: trust.exchange,
    resources: trust.resources,
    logins: trust.logins,
    sharedDashboards: dashboards.all,
    firstUse: processFiles.firstUse,
    breakGlassRegistry: openBreakGlass(join(dataDir, 'break-glass'), settings.alarms.url, log),
    owner: createOwner(settings.owner, log),
    engines,
    runners: new SealedValue(runners),
    defaultConnector,
    memory,
    spool,
    epochs,
    rollups,
    rowRights: rightsSigners(engines, keys),
    readCatalog: reads.readCatalog,
    readRollupStates: reads.readRollupStates,
    content: contentPlane(() => model().manifest, reads, settings.content, log, dataDir),
    publishing,
    drafting,
    fallbackPolicy: () => serving.fallbackPolicy,
    policyFault: () => serving.policyFault,
    activation: () => processFiles.activation(),
    servicesReached: () => ({
      control: baseFiles.hasControlAnswered(),
      clock: !baseFiles.isClockWrong(),
      limits: countsAnswered(),
      issuers: trust.issuerAvailability(),
    }),
    acceptsRequests: () => !drained && processFiles.acceptsRequests(),
    drain: (isDraining: boolean) => {
      drained = isDraining;
    },
    draining: () => drained,
  });
  const parts = { ...events, service, serving, publishing, revocations, keys, opened, announce };
  const { changes } = closing.add(
    startChanges({ ...parts, trust: trust.reload, dashboards: dashboards.reload }, processFiles, settings),
  );
  if (policyFault !== null)
    await recordEvent(events, 'service.policy', { state: 'missing', why: 'at start' });
  return Object.freeze({
    ...changes,
    service,
    databases,
    means,
    record: (action: string, detail: object) => recordEvent(events, action, detail),
    keys,
    policyFault,
    fatalFailure,
    close: () => closing.close(),
  });
}
