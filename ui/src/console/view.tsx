// For whoever runs the server: topics and what is computed from what, how fast
// they grow, how far the views are behind; one topic; the metadata tree.

import { useCallback, useRef } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { Chart } from "./chart.js";
import { egressOf, headOf, type Lag, lagsOf, recordsOf, sum, type Topic } from "./figures.js";
import { Graph, topicPage } from "./graph.js";
import { useLook } from "./look.js";
import { added, ratesOf, type Sample, short } from "./samples.js";
import { TopicView } from "./topic.js";
import { TreeView } from "./tree.js";

/** What of the console is looked at. */
export interface Place {
  /** `topics` or `tree`. */
  part: string;
  /** A topic, or a path; empty = all. */
  of: string;
}

interface Figures {
  topics: Topic[];
  lags: ReadonlyMap<string, Lag>;
  samples: readonly Sample[];
}

export function ConsoleView({ place }: { place: Place }) {
  const { words } = useShared();
  return (
    <>
      <div class="title-line">
        <h1>{words.console}</h1>
        <nav class="parts" aria-label={words.console}>
          <a
            class="step"
            href="#/console"
            aria-current={place.part === "topics" ? "page" : undefined}
          >
            {words.topics}
          </a>
          <a
            class="step"
            href="#/console/tree"
            aria-current={place.part === "tree" ? "page" : undefined}
          >
            {words.tree}
          </a>
        </nav>
      </div>
      {place.part === "tree" ? <TreeView path={place.of || "/"} /> : <Topics name={place.of} />}
    </>
  );
}

function Topics({ name }: { name: string }) {
  const { words, client } = useShared();
  const samples = useRef<readonly Sample[]>([]);
  const look = useCallback(async (): Promise<Figures> => {
    const [{ topics }, metrics] = await Promise.all([
      client.json<{ topics: Topic[] }>("GET", "/v1/topics"),
      client.raw("GET", "/metrics").then((response) => response.text()),
    ]);
    const heads = new Map(topics.map((topic) => [topic.name, headOf(topic)]));
    const sample = { at: performance.now(), heads, egress: egressOf(metrics) };
    samples.current = added(samples.current, sample);
    return { topics, lags: lagsOf(metrics), samples: samples.current };
  }, [client]);
  const { seen, problem } = useLook(look);
  const topic = seen?.topics.find((topic) => topic.name === name);

  return (
    <>
      {problem && (
        <div class="empty" role="alert">
          <p>{tell(words, problem)}</p>
        </div>
      )}
      {!problem && !seen && <p class="wait">{words.loading}</p>}
      {seen && !name && <Overview {...seen} />}
      {seen && name && !topic && <p class="empty">{words.noTopic}</p>}
      {seen && topic && (
        <TopicView
          key={name}
          topic={topic}
          lag={seen.lags.get(name)}
          derived={seen.topics.filter(({ source }) => source === name)}
        >
          <div class="charts">
            <Chart
              label={words.written}
              unit={words.perSecond}
              rates={ratesOf(seen.samples, topic.source ?? name, "heads")}
            />
            <Chart
              label={words.handedOut}
              unit={words.bytesPerSecond}
              rates={ratesOf(seen.samples, name, "egress")}
            />
          </div>
        </TopicView>
      )}
    </>
  );
}

function Overview({ topics, lags, samples }: Figures) {
  const { words } = useShared();
  return (
    <>
      <Graph topics={topics} />
      <div class="wide">
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">{words.topic}</th>
              <th scope="col">{words.origin}</th>
              <th scope="col">{words.partitions}</th>
              <th scope="col">{words.records}</th>
              <th scope="col">{words.rate}</th>
              <th scope="col">{words.behind}</th>
            </tr>
          </thead>
          <tbody>
            {topics.map((topic) => {
              const lag = lags.get(topic.name);
              const rate = ratesOf(samples, topic.source ?? topic.name, "heads").at(-1);
              return (
                <tr key={topic.name} data-topic={topic.name}>
                  <th scope="row">
                    <a href={topicPage(topic.name)}>{topic.name}</a>
                  </th>
                  <td>{topic.source ?? words.own}</td>
                  <td>{topic.partitions}</td>
                  <td>{sum(topic.bounds.map(recordsOf))}</td>
                  <td>{rate === undefined ? "–" : short(rate)}</td>
                  <td>{lag ? sum(lag.values()) : "–"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}
