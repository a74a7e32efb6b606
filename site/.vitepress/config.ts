import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { slugOf } from '../build/markdown.js';
import { sectionsOf } from '../build/pages.js';
import { ICON, siteLink, sitePath, stage } from '../build/stage.js';
import { playground } from './playground.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGES = '.pages';

stage(ROOT, join(ROOT, 'site', PAGES));

const linkOf = (path: string): string =>
  `/${sitePath(`docs/${path}`, false)
    .replace(/(^|\/)index\.md$/, '$1')
    .replace(/\.md$/, '')}`;

// biome-ignore lint/style/noDefaultExport: VitePress reads it.
export default defineConfig({
  title: 'OSL Gateway',
  description: 'A governed semantic layer over Postgres.',
  lang: 'en',
  base: process.env['OSL_DOCS_BASE'] ?? '/',
  srcDir: PAGES,
  srcExclude: ['public/**'],
  outDir: 'dist',
  cacheDir: '.vitepress/cache',
  vite: playground,
  // A page asks for nothing that its reader has not opened.
  router: { prefetchLinks: false },
  head: [
    // Nothing that is typed into the playground, and nothing that a link to it holds, goes to another server.
    [
      'meta',
      {
        'http-equiv': 'Content-Security-Policy',
        content:
          "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
          "object-src 'none'; base-uri 'none'; form-action 'none'",
      },
    ],
    // In the page, because a browser asks for an icon again whenever the address changes.
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }],
  ],
  markdown: {
    anchor: { slugify: slugOf },
    languageAlias: { osl: 'sql' },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
    config(md) {
      // What a page says between two braces is text, and no expression of the site.
      const text = md.renderer.rules.text;
      md.renderer.rules.text = (...args) => (text?.(...args) ?? '').replaceAll('{{', '&#123;&#123;');
      md.core.ruler.push('links-of-the-repository', ({ tokens, env }) => {
        for (const token of tokens) {
          // A table that is wider than the screen can be scrolled by keyboard.
          if (token.type === 'table_open') token.attrSet('tabindex', '0');
          for (const child of token.children ?? []) {
            const name = child.type === 'link_open' ? 'href' : child.type === 'image' ? 'src' : null;
            const href = name === null ? null : child.attrGet(name);
            if (child.type === 'code_inline') child.attrSet('v-pre', '');
            if (name !== null && href !== null) child.attrSet(name, siteLink(ROOT, env.relativePath, href));
          }
        }
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    externalLinkIcon: true,
    nav: [
      { text: 'Begin', link: linkOf('getting-started.md') },
      { text: 'Playground', link: linkOf('playground.md') },
      { text: 'Cookbook', link: linkOf('cookbook/README.md') },
      { text: 'Security', link: linkOf('threat-model.md') },
    ],
    sidebar: sectionsOf(join(ROOT, 'docs')).map(({ title, pages }) => ({
      text: title,
      items: pages.map((page) => ({ text: page.title, link: linkOf(page.path) })),
    })),
    footer: { message: 'Apache-2.0' },
  },
});
