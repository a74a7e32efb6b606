/** The part of `node:net` that networks in a policy's conditions use. */
import ipaddr from 'ipaddr.js';

export function isIP(text: string): 0 | 4 | 6 {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return 4;
  return text.includes(':') && ipaddr.IPv6.isValid(text) ? 6 : 0;
}

export class BlockList {
  readonly #subnets: [ipaddr.IPv4 | ipaddr.IPv6, number][] = [];

  addSubnet(address: string, prefix: number): void {
    this.#subnets.push([ipaddr.parse(address), prefix]);
  }

  check(address: string): boolean {
    const parsed = ipaddr.parse(address);
    return this.#subnets.some((s) => s[0].kind() === parsed.kind() && parsed.match(s[0], s[1]));
  }
}
