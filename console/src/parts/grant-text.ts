/** Formats a grant as in a policy file, on one line. */
export function grantText(grant: Readonly<Record<string, unknown>>): string {
  return `- ${valueText(grant)}`;
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([name, member]) => `${name}: ${valueText(member)}`);
    return `{ ${members.join(', ')} }`;
  }
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = String(value);
  return /^[A-Za-z_][\w.]*$/.test(text) && !/^(true|false|null|yes|no|on|off)$/i.test(text)
    ? text
    : JSON.stringify(text);
}
