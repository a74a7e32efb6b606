import type { AuditLog } from '../../../audit/index.js';
import type { PublishingParts } from '../../ask/authoring/publish.js';
import type { SubscriptionParts } from '../../ask/data/subscription.js';
import type { DecidingParts, RunningParts } from '../../ask/index.js';
import type { ReceiptParts } from '../../ask/receipts/receipt-request.js';
import type { DashboardParts } from '../../ask/request/calls-without-data.js';
import type { Probes } from '../../ask/request/probes.js';
import type { AccessRequestParts } from '../../ask/why/request-access.js';
import type { FallbackPolicy, ServicesReached } from '../../model/served-model.js';
import type { TokenParts } from './routes/token.js';

/** State of the service as shown by `/health` and `/ready`. */
export interface HealthParts extends Pick<DecidingParts, 'model'>, Pick<RunningParts, 'engines'> {
  fallbackPolicy(): FallbackPolicy | null;
  servicesReached(): ServicesReached;
  readonly audit: Pick<AuditLog, 'stats'>;
  /** False if other processes of the server are not ready. */
  acceptsRequests(): boolean;
  /** True if no new sessions are accepted. */
  draining(): boolean;
  readonly probes: Pick<Probes, 'count'>;
}

export interface RestParts
  extends SubscriptionParts,
    PublishingParts,
    AccessRequestParts,
    ReceiptParts,
    DashboardParts,
    HealthParts,
    TokenParts {}
