# OSL Gateway as an image: docs/operations.md, "As a container". The steps are the scripts that test/tools/package runs.

FROM node:24.21.0-bookworm-slim AS packed
WORKDIR /src
COPY . .
RUN npm ci --no-audit --no-fund
RUN npm run -s build && sh deploy/pack.sh /packed

FROM node:24.21.0-bookworm-slim AS installed
COPY --from=packed /packed /packed
COPY deploy/install.sh deploy/prune.sh /packed/
RUN sh /packed/install.sh /opt/osl /packed/*.tgz && sh /packed/prune.sh /opt/osl

# The final image: Node and the installed packages, without tools that install or build.
FROM node:24.21.0-bookworm-slim
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn* \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg \
    && install -d -o node -g node -m 700 /var/lib/osl && install -d /etc/osl
COPY --from=installed /opt/osl /opt/osl
USER 1000:1000
WORKDIR /etc/osl
ENV NODE_ENV=production
ENV OSL_HOST=0.0.0.0
ENV OSL_MANIFEST=/etc/osl/manifest.yaml
ENV OSL_POLICY=/etc/osl/policy.yaml
ENV OSL_DATA_DIR=/var/lib/osl
# Keys, audit log, published versions: keep this volume. Nothing else is written, so the root can be read-only:
# docker run --read-only.
VOLUME /var/lib/osl
EXPOSE 8642 15432
STOPSIGNAL SIGTERM
# Any response counts as healthy: while the audit log's disk fails, /health is 503, and a restart would not repair it.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["node", "-e", "const e = process.env, tls = e.OSL_HTTP_TLS !== 'off' && (e.OSL_HTTP_TLS_CERT || e.OSL_TLS_CERT); require(tls ? 'node:https' : 'node:http').get({ host: '127.0.0.1', port: e.OSL_HTTP_PORT || 8642, path: '/health', rejectUnauthorized: false }, () => process.exit(0)).on('error', () => process.exit(1))"]
ENTRYPOINT ["node", "/opt/osl/node_modules/osl-gateway/bin/osl.js"]
CMD ["serve"]
