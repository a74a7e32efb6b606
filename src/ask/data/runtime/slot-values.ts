import { hkdfSync } from 'node:crypto';
import { InternalError, type Slot, valuesOf } from 'osl-compiler';
import type { BoundValue } from '../../../engine/index.js';
import type { MaskKeys, RuntimeRows, StepInput } from '../parts.js';

/** Returns the values of `slots`, in order, from the caller, the policy, and earlier steps. */
export function slotValues(
  slots: readonly Slot[],
  args: ReadonlyMap<string, string>,
  { parts, caller, parameters }: Pick<StepInput, 'parts' | 'caller' | 'parameters'>,
  runtime: readonly RuntimeRows[] = [],
): readonly BoundValue[] {
  const rowsAt = (index: number): RuntimeRows => {
    const rows = runtime[index];
    if (rows === undefined) throw new InternalError(`runtime relation ${index} was not worked out`);
    return rows;
  };
  return valuesOf<BoundValue>(slots, {
    text: textParameter,
    client: (index) => parameters[index],
    attribute: (subject, name) => caller.access.attributeValues(subject, name),
    pad: (pad, domain) => parts.maskKeys.pad(pad, domain),
    given: (name) => {
      const value = args.get(name);
      if (value === undefined) throw new InternalError(`no step gives \`${name}\``);
      return value;
    },
    runtime: (index) => rowsAt(index).json,
    keys: (index, column) => rowsAt(index).keys(column),
  });
}

export function textParameter(value: string): BoundValue {
  return { format: 0, bytes: Buffer.from(value, 'utf8') };
}

const BLOCK_BYTES = 64;
const MAX_DOMAINS = 10_000;

/** Derives keys from `secret` (≥ 32 bytes) with HKDF-SHA-256, so that hashes of different domains are unrelated. */
export function maskKeys(secret: Uint8Array, tenant: string): MaskKeys {
  const pads = new Map<string, { readonly inner: string; readonly outer: string }>();
  return Object.freeze({
    pad: (side: 'inner' | 'outer', domain: string) => {
      const domainPads = pads.get(domain) ?? padsOf(secret, tenant, domain);
      if (pads.size < MAX_DOMAINS) pads.set(domain, domainPads);
      return domainPads[side];
    },
  });
}

function padsOf(secret: Uint8Array, tenant: string, domain: string) {
  const key = Buffer.from(hkdfSync('sha256', secret, tenant, `osl mask ${domain}`, BLOCK_BYTES));
  const xor = (byte: number): string => Buffer.from(key.map((b) => b ^ byte)).toString('hex');
  return Object.freeze({ inner: xor(0x36), outer: xor(0x5c) });
}
