import type { MetricsBody } from '../choice/body.js';

/** The body as text, as it would be put into a file. */
export function jsonOf(body: MetricsBody): string {
  return JSON.stringify(body, null, 2);
}

/** A command line that asks the same. The token stays where it is: the shell's variable names it. */
export function curlOf(body: MetricsBody, origin: string): string {
  const quoted = `'${jsonOf(body).replaceAll("'", `'\\''`)}'`;
  return [
    `curl -sS '${origin}/osl/query' \\`,
    `  -H "Authorization: Bearer $OSL_TOKEN" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted}`,
  ].join('\n');
}
