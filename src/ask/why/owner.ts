/** What the owner of the policy is told of, as JSON. */
export interface OwnerNotice {
  /** `osl.access_request`. */
  readonly type: string;
  /** Unique; a receiver that hears it twice takes it once. */
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reaches whoever owns the policy, outside of this service. */
export interface Owner {
  /** Resolves once the owner's receiver has it; null where the settings name no receiver. @throws QueryError E5034 */
  readonly tell: ((notice: OwnerNotice) => Promise<void>) | null;
}
