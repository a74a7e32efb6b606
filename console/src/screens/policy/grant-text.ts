/** Formats a grant as in a policy file, on one line. */
export function grantText(grant: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(grant).map(([name, value]) => `${name}: ${valueText(value)}`);
  return `- { ${members.join(', ')} }`;
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`;
  const text = String(value);
  return /^[A-Za-z_][\w.]*$/.test(text) && !/^(true|false|null|yes|no|on|off)$/i.test(text)
    ? text
    : JSON.stringify(text);
}
