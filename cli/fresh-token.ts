import { type CallerFlags, callerToken } from './caller.js';
import { settingsOf } from './flags.js';

const FRESH_MS = 240_000;

/** Token source for many requests: a given token, or one that is minted or fetched again before it expires. */
export interface FreshToken {
  current(): Promise<string>;
  /** Another token, after the server rejected the last one; null if there is only the given one. */
  another(): Promise<string | null>;
}

/** Token source for the caller of the flags; a caller assumed at first is kept. @throws Failure as `callerToken` */
export async function freshToken(flags: CallerFlags & { readonly dataDir?: string }): Promise<FreshToken> {
  const settings = settingsOf(flags);
  const policy = flags.policy === undefined ? {} : { policy: settings.policyFile };
  const first = await callerToken({ ...flags, ...policy }, settings);
  if (first.kind === 'given' && !first.renews)
    return { current: async () => first.token, another: async () => null };
  const caller = first.kind === 'given' ? flags : { chain: first.issued.chain, ...policy };
  let { token } = first.kind === 'given' ? first : first.issued;
  let since = performance.now();
  const another = async (): Promise<string> => {
    const next = await callerToken(caller, settings);
    token = next.kind === 'given' ? next.token : next.issued.token;
    since = performance.now();
    return token;
  };
  return {
    current: async () => (performance.now() - since > FRESH_MS ? another() : token),
    another,
  };
}
