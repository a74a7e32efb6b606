import { isIPv4, isIPv6 } from 'node:net';

/**
 * The part of a peer's address that a rate limit counts by: an IPv4 address whole, an IPv6 address by its /64,
 * since one household has 2⁶⁴ of them. An IPv4-mapped IPv6 address is the IPv4 address. What is no address
 * (a Unix socket) counts as one peer.
 */
export function addressGroup(address: string): string {
  const bare = address.split('%', 1)[0] ?? '';
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return 'local';
  const groups = expand(bare);
  const [g0, g1, g2, g3, g4, g5, g6 = 0, g7 = 0] = groups;
  const zeros = [g0, g1, g2, g3, g4].every((g) => g === 0);
  if (zeros && g5 === 0xffff) return [g6 >> 8, g6 & 0xff, g7 >> 8, g7 & 0xff].join('.');
  return `${groups
    .slice(0, 4)
    .map((g) => g.toString(16))
    .join(':')}::/64`;
}

/** The eight 16-bit groups of a valid IPv6 address. The URL parser normalises it, dotted tails included. */
function expand(address: string): readonly number[] {
  const normal = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = normal.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].map((g) => Number.parseInt(g, 16));
}
