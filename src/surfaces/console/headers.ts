/**
 * What the console's pages may do: load and call nothing but this server, be in nobody's frame, and show no text as
 * markup. `connects` are origins beside this one that they may call: the issuers with which people sign in.
 *
 * `trusted-types`: the one policy that the page makes takes the empty text alone, so that whatever would put a value
 * into the page as markup throws instead.
 */
export function consoleHeaders(connects: readonly string[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'self'",
    ...(connects.length === 0 ? [] : [`connect-src 'self' ${connects.join(' ')}`]),
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types default',
  ];
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  };
}

/** The origins of what is fetched to sign in; a text that is no URL of the web has none. */
export function originsOf(urls: readonly string[]): readonly string[] {
  const web = urls.filter((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol));
  return [...new Set(web.map((url) => new URL(url).origin))];
}
