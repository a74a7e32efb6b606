import type { AuditLog } from '../../audit/index.js';
import type { Limiter, TokenVerifier } from '../../policy/index.js';
import type { PublishingParts } from '../ask/authoring/publish.js';
import type { SubscriptionParts } from '../ask/data/subscription.js';
import type { DashboardParts } from '../ask/request/calls-without-data.js';
import type { RequestControls } from '../ask/request/parts.js';
import type { Probes, RefusalThrottle } from '../ask/request/probes.js';
import { SealedValue } from '../ask/request/sealed.js';
import type { TokenExchange } from '../ask/request/token-exchange.js';
import type { Shadows } from '../ask/shadow/shadows.js';
import type { AccessRequestParts } from '../ask/why/request-access.js';
import { messageOf } from '../base/thrown.js';
import type { SpoolRoom } from '../engine/index.js';
import type { FallbackPolicy, ServicesReached } from '../model/served-model.js';
import type { AuditReader } from './auditing/reader.js';
import type { Lineage } from './lineage/lineage.js';
import type { Revocations } from './revocations.js';
import { rollupReports } from './rollups.js';
import type { SystemReads } from './system-reads.js';
import type { TokenTrust } from './token-trust.js';

/** An open service, which is assembled once at startup. */
export interface Service
  extends SubscriptionParts,
    PublishingParts,
    AccessRequestParts,
    DashboardParts,
    Pick<SystemReads, 'readCatalog' | 'readRollupStates'> {
  /** The last valid policy, if it is kept in force because the newest one is missing or invalid; otherwise null. */
  fallbackPolicy(): FallbackPolicy | null;
  /** The fault in the newest policy, only for operators, since it may name files; null if that policy is in force. */
  policyFault(): string | null;
  readonly probes: Probes;
  /** Number of the last policy activation seen in the control database; null if the gateway has its own policy. */
  activation(): number | null;
  servicesReached(): ServicesReached;
  acceptsRequests(): boolean;
  /** Stops reporting ready and accepting sessions if `isDraining`; resumes otherwise. */
  drain(isDraining: boolean): void;
  readonly revocations: Revocations;
  readonly refusals: RefusalThrottle;
  readonly audit: Pick<AuditLog, 'stats'>;
  readonly verifier: TokenVerifier;
  readonly exchange: TokenExchange;
  /** The audiences by which issuers identify this service. */
  readonly resources: () => readonly string[];
  /** The issuers of identity tokens, each with its OAuth client for logging in; null if it has none. */
  readonly logins: TokenTrust['logins'];
  readonly lineage: Lineage | null;
  /** The reader of the audit log, for receipts and operators. */
  readonly reading: AuditReader;
  readonly spool: SpoolRoom | null;
  readonly shadow: Shadows;
}

/** Returns the `means` of a service with another rate limiter, for policy tests. */
export function withLimiter(controls: RequestControls, limiter: Limiter): Pick<Service, 'controls'> {
  return { controls: new SealedValue({ ...controls, limiter }) };
}

/** Returns the audit log reader, and a function for the freshness of indexes, rollups and the published version. */
export function createInsight(service: Service) {
  const { reading } = service;
  const freshness = async () => {
    const { manifest } = service.model();
    const facets = [...manifest.facets.values()].filter((f) => f.legOf === null).map((f) => f.name);
    const times = facets.length === 0 ? new Map<string, string>() : await service.content.indexedAt(facets);
    const { head } = service.publishing.versions;
    return {
      indexes: facets.map((facet) => ({ facet, indexed_at: times.get(facet) ?? null })),
      rollups: await rollupViews(service),
      published: head === null ? null : { number: head.number, id: head.id, at: head.at },
      activation: service.activation(),
    };
  };
  return Object.freeze({ reading, freshness });
}

async function rollupViews(service: Service) {
  const { manifest } = service.model();
  if (manifest.rollups.size === 0) return [];
  try {
    const reports = await rollupReports(manifest, service, []);
    return reports.map(({ builtAt, maxAgeSeconds, ...report }) => ({
      ...report,
      built_at: builtAt,
      max_age_seconds: maxAgeSeconds,
    }));
  } catch (error) {
    service.log.warn('rollups could not be looked at for who asked', { cause: messageOf(error) });
    return null;
  }
}
