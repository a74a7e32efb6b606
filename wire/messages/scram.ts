import { fatal } from '../errors.js';

const MECHANISM = 'SCRAM-SHA-256';
/** Longest message of either side, in bytes. */
const LONGEST = 1_024;

/** `n` or `y`: no channel binding, which is not offered; no name to act for; then user and nonce. */
const FIRST = /^([ny]),,n=[^,]*,r=[\x21-\x2b\x2d-\x7e]{1,256}$/;
const FINAL = /^c=(biws|eSws),r=[\x21-\x2b\x2d-\x7e]{1,512},p=[A-Za-z0-9+/]{43}=$/;

/** What the client's first message said of channel binding; its final message must say the same. */
export type ChannelBinding = 'n' | 'y';

/** Checks a SASLInitialResponse: FATAL 08P01, 28000. */
export function checkScramFirst(body: Buffer): ChannelBinding {
  const end = body.indexOf(0);
  if (end < 0 || body.length < end + 5) throw fatal('08P01', 'invalid SASL initial response');
  if (body.toString('latin1', 0, end) !== MECHANISM)
    throw fatal('28000', 'client selected an invalid SASL authentication mechanism');
  const length = body.readInt32BE(end + 1);
  if (length < 0 || length > LONGEST || length !== body.length - end - 5)
    throw fatal('08P01', 'invalid SASL initial response');
  const binding = FIRST.exec(body.toString('utf8', end + 5))?.[1];
  if (binding !== 'n' && binding !== 'y') throw fatal('08P01', 'malformed SCRAM message');
  return binding;
}

/** Checks a SASLResponse: FATAL 08P01. */
export function checkScramFinal(body: Buffer, binding: ChannelBinding): void {
  const said = body.length > LONGEST ? null : FINAL.exec(body.toString('latin1'));
  if (said?.[1] !== (binding === 'n' ? 'biws' : 'eSws')) throw fatal('08P01', 'malformed SCRAM message');
}
