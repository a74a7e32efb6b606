import { type CallerFlags, callerToken } from './caller.js';
import { settingsOf } from './flags.js';

/** A minted token is used for so long; it lives 300 s. */
const FRESH_MS = 240_000;

/** The token of each of many requests: the one that was given, or one that is minted or fetched anew before it ends. */
export interface FreshToken {
  /** A token that is good for a while. */
  current(): Promise<string>;
  /** Another one, after the server did not take the last; null where there is none but the one that was given. */
  another(): Promise<string | null>;
}

/** Tokens of whoever the flags say; who was assumed at first stays the caller. @throws Failure as `callerToken` */
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
