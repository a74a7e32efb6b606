/** A person at a browser, as far as a provider's pages go: follows redirects, keeps cookies, sends forms. */
export class Browser {
  readonly #login: string;
  readonly #cookies = new Map<string, string>();

  /** @param login what is typed into a form that asks for it */
  constructor(login: string) {
    this.#login = login;
  }

  /**
   * Opens `url` and does what its pages ask. Gives the address outside the provider that it was sent on to, or the text
   * of the last page.
   */
  async visit(url: string): Promise<string> {
    const { origin } = new URL(url);
    let reply = await this.#open(url);
    for (let step = 0; step < 20; step++) {
      const location = reply.headers.get('location');
      if (location !== null) {
        const next = new URL(location, reply.url);
        if (next.origin !== origin) return next.href;
        reply = await this.#open(next.href);
        continue;
      }
      const page = await reply.text();
      const form = formIn(page, reply.url);
      if (form === null) return page;
      for (const [name, value] of [
        ['login', this.#login],
        ['password', 'any'],
      ] as const)
        if (form.asks.has(name)) form.fields.set(name, value);
      reply = await this.#open(form.action, form.fields);
    }
    throw new Error('the pages of the provider do not end');
  }

  async #open(url: string, form?: URLSearchParams): Promise<Response> {
    const headers = { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    const more = form === undefined ? {} : { method: 'POST', body: form };
    const reply = await fetch(url, { headers, redirect: 'manual', ...more });
    for (const cookie of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === '') this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return reply;
  }
}

interface Form {
  readonly action: string;
  readonly fields: URLSearchParams;
  readonly asks: ReadonlySet<string>;
}

function formIn(page: string, url: string): Form | null {
  const [, tag = '', body = ''] = /<form([^>]*)>([\s\S]*?)<\/form>/.exec(page) ?? [];
  if (tag === '') return null;
  const fields = new URLSearchParams();
  const asks = new Set<string>();
  for (const [, input = ''] of body.matchAll(/<(?:input|button)([^>]*)>/g)) {
    const name = attribute(input, 'name');
    if (name === null || name === 'abort') continue;
    if (attribute(input, 'type') === 'hidden') fields.set(name, attribute(input, 'value') ?? '');
    else asks.add(name);
  }
  return { action: new URL(attribute(tag, 'action') ?? url, url).href, fields, asks };
}

function attribute(tag: string, name: string): string | null {
  return new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1]?.replaceAll('&amp;', '&') ?? null;
}
