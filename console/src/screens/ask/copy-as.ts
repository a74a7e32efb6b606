/** Formats in which a query can be copied, with their titles. */
export const WAY_TITLES = { curl: 'curl', psql: 'psql', python: 'Python', mcp: 'MCP' } as const;
export type CopyTarget = keyof typeof WAY_TITLES;
export const WAYS = Object.keys(WAY_TITLES) as readonly CopyTarget[]; // the object has no other keys

interface QuestionToCopy {
  readonly text: string;
  readonly kind: 'osql' | 'sql';
  /** Origin of the gateway: `https://osl.example`. */
  readonly origin: string;
  readonly wire: { readonly port: number; readonly tls: boolean };
  /** Delegation chain, from root to leaf. */
  readonly chain: readonly string[];
  /** True if the gateway accepts tokens created by `osl token`. */
  readonly localTokens: boolean;
}

/** Formats a query as input for a tool. The result never includes the token. */
export function copyAs(way: CopyTarget, copied: QuestionToCopy): string {
  const { text, kind, origin } = copied;
  const body = JSON.stringify({ [kind]: text });
  switch (way) {
    case 'curl':
      return [
        `curl -s ${origin}/osl/query \\`,
        `  -H "Authorization: Bearer ${mintOf(copied)}" \\`,
        "  -H 'Content-Type: application/json' \\",
        `  -d ${shellQuoted(body)}`,
      ].join('\n');
    case 'psql':
      return [
        `PGPASSWORD="${mintOf(copied)}" ${copied.wire.tls ? 'PGSSLMODE=require ' : ''}psql \\`,
        `  -h ${hostOf(origin)} -p ${copied.wire.port} -U ${shellQuoted(copied.chain.at(-1) ?? '')} -d osl \\`,
        `  -c ${shellQuoted(text)}`,
      ].join('\n');
    case 'python':
      return [
        'import os, json, urllib.request',
        '',
        `question = ${pythonText(text)}`,
        'request = urllib.request.Request(',
        `    ${pythonText(`${origin}/osl/query`)},`,
        `    data=json.dumps({"${kind}": question}).encode(),`,
        '    headers={',
        '        "Authorization": "Bearer " + os.environ["OSL_TOKEN"],',
        '        "Content-Type": "application/json",',
        '    },',
        ')',
        'answer = json.load(urllib.request.urlopen(request))',
        'for row in answer["rows"]:',
        '    print(row)',
      ].join('\n');
    case 'mcp':
      return JSON.stringify(
        {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'semantic_query', arguments: { [kind]: text } },
        },
        null,
        2,
      );
  }
}

function mintOf({ chain, localTokens }: QuestionToCopy): string {
  if (!localTokens) return '$OSL_TOKEN';
  const leaf = shellQuoted(chain.at(-1) ?? '');
  const whole = chain.length > 1 ? ` --chain ${shellQuoted(chain.join(','))}` : '';
  return `$(npx osl token --subject ${leaf}${whole})`;
}

function hostOf(origin: string): string {
  return new URL(origin).hostname.replace(/^\[|\]$/g, '');
}

/** Quotes a text as a single word for a POSIX shell. */
export function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Formats a Python string, triple-quoted for most multi-line texts; otherwise JSON, which Python accepts. */
function pythonText(text: string): string {
  return text.includes('\n') && !text.includes('"""') && !text.includes('\\') && !text.endsWith('"')
    ? `"""${text}"""`
    : JSON.stringify(text);
}
