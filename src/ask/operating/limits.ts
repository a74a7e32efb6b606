import { LIMIT_BUCKETS, type LimitBucket, type QuotaUnit, quotaOf } from '../../../policy/index.js';
import type { RequestCall } from '../index.js';
import { quotaCounts } from '../request/limit.js';
import { type InsightParts, look } from './look.js';

/** A limit of the policy that is counted in a window. */
interface QuotaView {
  readonly bucket: LimitBucket;
  readonly unit: QuotaUnit;
  readonly most: number;
  readonly window_seconds: number;
  /** Whose members it is for; null: everybody's. */
  readonly role: string | null;
  /** Each subject has it for itself. */
  readonly each: boolean;
  /** How much of it is used, by all or by the subject that was named; null where none was. */
  readonly used: number | null;
  /** Until its window ends. */
  readonly ends_in_seconds: number | null;
}

export interface LimitsView {
  /** Requests a second of one subject. */
  readonly per_second: readonly { readonly bucket: LimitBucket; readonly most: number }[];
  readonly quotas: readonly QuotaView[];
  /** Of whom what each subject has for itself is told. */
  readonly subject: string | null;
}

/** The limits of the policy that serves, and how much of them is used. @throws QueryError E2101, and as `respond` */
export function limits(parts: InsightParts, call: RequestCall, subject: string | null): Promise<LimitsView> {
  return look(parts, call, 'admin_show', async ({ snapshot, identity: { tenant } }) => {
    const told = snapshot.quotas.map((rule) => ({
      rule,
      quota: rule.each && subject === null ? null : quotaOf(rule, tenant, subject ?? ''),
    }));
    const counted = told.flatMap(({ quota }) => quota ?? []);
    const counts = new Map((await quotaCounts(parts, counted)).map((count, i) => [counted[i]?.key, count]));
    return {
      per_second: LIMIT_BUCKETS.map((bucket) => ({ bucket, most: snapshot.limits[bucket] })),
      quotas: told.map(({ rule: { bucket, unit, most, windowMs, role, each }, quota }): QuotaView => {
        const count = quota === null ? undefined : counts.get(quota.key);
        return {
          bucket,
          unit,
          most,
          window_seconds: windowMs / 1_000,
          role,
          each,
          used: count?.used ?? null,
          ends_in_seconds: count === undefined ? null : Math.ceil(count.endsInMs / 1_000),
        };
      }),
      subject,
    };
  });
}
